"""bcd doctor: findings, the checks that make them, the report that draws them. Looks and changes nothing."""
