"""The agent's process: the same scripted agent loop for every arm; arms differ in the tool alone.

``python -m scenarios.suite.worker WORK`` with ``Work`` as JSON. It tells what happens as JSON lines.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import Any

from interlock_tools.testing.crash import CrashPoint, arm, reach
from scenarios.suite.model import Arm, Work


def tell(event: str, values: dict[str, Any]) -> None:
    """Report to the process that plays the cell."""
    print(json.dumps({"event": event, "at": time.monotonic(), **values}, default=str), flush=True)


class Pauses(logging.Handler):
    """Tells of every pause that the gate makes, with its length and its reason."""

    def emit(self, record: logging.LogRecord) -> None:
        if hasattr(record, "pause_s"):
            tell("pause", {"seconds": record.pause_s, "why": getattr(record, "why", "")})


def hear_pauses() -> None:
    """Let ``Pauses`` hear the gate's log."""
    log = logging.getLogger("interlock_tools")
    log.setLevel(logging.DEBUG)
    log.addHandler(Pauses())


def load(work: Work) -> Arm:
    """Import all that this agent needs, as a process does that starts; return its arm."""
    from scenarios.suite.catalogue import scenario

    arm = scenario(work.scenario).arms[work.arm]
    database = ("psycopg",) if "SCENARIO_DATABASE" in os.environ else ()
    signing = ("interlock_tools.sealing.front",) if arm.kind == "interlock" else ()
    for name in ("langchain.agents", "interlock_tools.langchain.testing", *signing, *arm.loads, *database):
        import_module(name)
    return arm


def wait_for(variable: str) -> None:
    """Wait until the file is there that an environment variable names; not at all where it names none."""
    name = os.environ.get(variable)
    deadline = time.monotonic() + 120
    while name and not Path(name).exists() and time.monotonic() < deadline:
        time.sleep(0.001)


def first_dies(work: Work) -> None:
    """Where several agents race: the first to reach the crash point is killed there, and no other."""
    point, token = os.environ.get("SCENARIO_FIRST_DIES"), os.environ.get("SCENARIO_TOKEN")
    if not point or not token or work.life > 1:
        return

    def die_if_first() -> None:
        try:
            fd = os.open(token, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            return
        os.write(fd, f"{work.worker}:{point}".encode())
        os.kill(os.getpid(), signal.SIGKILL)

    arm(CrashPoint(point), action=die_if_first)


def checkpointer(work: Work) -> Any:
    """LangGraph's checkpointer on SQLite, in the agent's folder."""
    import sqlite3

    from langgraph.checkpoint.sqlite import SqliteSaver

    path = work.path / f"checkpoints-{work.worker}.db"
    return SqliteSaver(sqlite3.connect(path, check_same_thread=False))


def main() -> int:
    """Run the agent once."""
    work = Work(**json.loads(sys.argv[1]))
    chosen = load(work)
    hear_pauses()
    tell("loaded", {})
    wait_for("SCENARIO_STAND_BY")  # kept in reserve for another process, until that one has died
    tell("acts", {})
    tool = chosen.make(work)

    from langchain.agents import create_agent
    from langchain_core.messages import HumanMessage

    from interlock_tools.langchain.testing import ScriptedModel, calls, repeats_the_tool

    def answers(messages: Any) -> Any:
        if chosen.checkpointed:  # the graph has saved what the tool answered, and nobody has been told
            reach(CrashPoint.AFTER_COMMITTED)
        return repeats_the_tool(messages)

    model = ScriptedModel(script=[calls(tool.name, **work.arguments), answers])
    saver = checkpointer(work) if chosen.checkpointed else None
    agent = create_agent(model, [tool], checkpointer=saver)
    config: Any = {"configurable": {"request_id": work.case, "thread_id": work.case}}
    message: Any = {"messages": [HumanMessage(f"{work.case} is approved: {json.dumps(work.arguments)}")]}
    if saver is not None and work.life > 1 and agent.get_state(config).next:
        message = None  # resume where the thread stopped
    first_dies(work)
    tell("ready", {})
    wait_for("SCENARIO_BARRIER")  # where several start together, until all are ready
    further: Any = {"durability": "sync"} if saver is not None else {}
    conversation = agent.invoke(message, config, **further)
    answer = conversation["messages"][-2]
    tell("answered", {"words": conversation["messages"][-1].text, "artifact": answer.artifact or {}})
    return 0


if __name__ == "__main__":
    sys.exit(main())
