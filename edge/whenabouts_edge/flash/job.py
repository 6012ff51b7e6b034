"""One flashing from beginning to end: compile, inspect, write the differences, verify, restart, wait for the first
heartbeat.
"""

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from whenabouts_edge.flash import FlashError, modules, plan
from whenabouts_edge.flash.boards import BoardFacts
from whenabouts_edge.flash.first_heartbeat import FirstHeartbeatWatch
from whenabouts_edge.flash.mpremote import Device
from whenabouts_edge.flash.program import program
from whenabouts_edge.flash.provision import CA_PATH, Provisioned


@dataclass(frozen=True, slots=True)
class Job:
    """One board on one port, and its target state.

    wait_s: how long to wait for its first heartbeat, None for not at all. say: called with each line of progress. Both
    methods return the machine-readable result, and raise FlashError.
    """

    port: str
    board: BoardFacts
    made: Provisioned
    wait_s: int | None
    say: Callable[[str], None]

    def dry_run(self) -> dict[str, Any]:
        """Inspect the board, and let it run again."""
        files, config = self._files()
        device, what = self._looked(files)
        device.restart()
        return self._reported(what, config)

    def flash(self) -> dict[str, Any]:
        """Write the differences, restart the board, wait."""
        files, config = self._files()
        if self.wait_s is None:
            device, what = self._written(files)
            device.restart()
            return self._reported(what, config)
        with FirstHeartbeatWatch(config, self.made.files.get(CA_PATH), self.made.identity) as arrival:
            device, what = self._written(files)
            before = arrival.before()
            device.restart()
            self.say("wait    for the first heartbeat")
            arrived = arrival.wait(self.port, before, self.wait_s)
        heartbeat = {
            "boot": arrived.heartbeat.boot,
            "after_s": round(arrived.after_s, 1),
            "clock": arrived.heartbeat.clock_state,
        }
        return {**self._reported(what, config), "heartbeat": heartbeat}

    def _files(self) -> tuple[list[plan.File], dict[str, Any]]:
        """The files of the board, and its configuration with a build that identifies exactly these modules."""
        kinds = [reader["kind"] for reader in self.made.config["readers"]]
        needed = modules.needed(self.board.modules, kinds, self.made.config)
        self.say(f"compile {len(needed)} modules")
        code = program(needed, self.made.config)
        digest = hashlib.sha256(b"".join(name.encode() + code[name] for name in sorted(code))).hexdigest()
        config = {**self.made.config, "build": f"{self.made.config.get('build', 'whenabouts')} {digest[:12]}"}
        return plan.contents(code, json.dumps(config, sort_keys=True).encode(), self.made.files), config

    def _looked(self, files: list[plan.File]) -> tuple[Device, plan.FlashPlan]:
        device = Device(self.port, self.say)
        self.say("hold    the board before its agent starts, so that no watchdog interrupts")
        device.hold()
        self.say(f"look    at the board on {self.port}")
        seen = device.look()
        what = plan.plan(files, seen)
        try:
            plan.refuse(self.board, self.port, seen)
            plan.refuse_full(self.board, files, what, seen)
        except FlashError:
            device.restart()  # the inspection interrupted the running program
            raise
        return device, what

    def _written(self, files: list[plan.File]) -> tuple[Device, plan.FlashPlan]:
        device, what = self._looked(files)
        if what.is_empty:
            self.say("keep    everything: the board is up to date")
            return device, what
        if what.detach:
            self.say("restart the board without its main program")
            device.detach()
        removed = [step.path for step in what.of("remove")]
        for path in removed:
            self.say(f"remove  {path}")
        device.remove(removed)
        device.make_folders([step.path for step in what.of("folder")])
        *others, main = files
        copied = {step.path for step in what.of("copy")}
        device.copy([(file.path, file.data) for file in others if file.path in copied])
        self.say("verify  every hash on the board")
        _refuse_differing(plan.differing(others, device.look()))
        device.copy([(main.path, main.data)])
        _refuse_differing(plan.differing(files, device.look()))
        return device, what

    def _reported(self, what: plan.FlashPlan, config: dict[str, Any]) -> dict[str, Any]:
        steps = [{"verb": step.verb, "path": step.path, "bytes": step.bytes} for step in what.steps]
        copied = what.of("copy")
        return {
            "port": self.port,
            "board": self.board.name,
            "build": config["build"],
            "kept": len(what.of("keep")),
            "copied": len(copied),
            "copied_bytes": sum(step.bytes for step in copied),
            "steps": steps,
        }


def _refuse_differing(faults: list[str]) -> None:
    if faults:
        more = f" and {len(faults) - 1} more" if len(faults) > 1 else ""
        raise FlashError(
            f"{faults[0]}{more}; run it again, it copies what differs; if this repeats, the flash or the cable is bad"
        )
