"""`bcd node` and its sisters: logging to standard error, then the agent."""

from bcd.commands.logs import log_to_stderr, service_formatter
from bcd.core.build import this_build
from bcd.core.config import load_config
from bcd.core.exits import ExitStatus
from bcd.node.main import run_agent


def run_role(role: str, config_path: str, log_level: str) -> ExitStatus:
    """Run the agent in a role. Raises what `run_agent` and `load_config` do."""
    log_to_stderr(service_formatter(), log_level.upper())
    return run_agent(role, load_config(config_path), this_build())


def run_helper_command(config_path: str, log_level: str) -> ExitStatus:
    """Run the privileged half. Raises what `run_helper` and `load_config` do."""
    from bcd.helper.main import run_helper  # the agent loads no server of root's

    log_to_stderr(service_formatter(), log_level.upper())
    return run_helper(load_config(config_path), this_build())
