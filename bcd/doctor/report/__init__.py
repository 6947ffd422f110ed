"""The report, drawn: the same findings in every format. Only `rich_report` loads rich, and only for a terminal."""
