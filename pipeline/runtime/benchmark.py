"""What the runtime costs on this machine, measured in one run against one server process an instance, called over MCP.

Absolute times depend on the machine and on what else it does; the ratios are what to compare. CPU seconds are those
of both sides: host and worker here, client and server there.
"""

from __future__ import annotations

import itertools
import os
import re
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from statistics import median
from typing import Any

import psutil

from pipeline.errors import UserError
from pipeline.model import Environment
from pipeline.runtime.arguments import sample_arguments
from pipeline.runtime.baseline_client import HttpFigures, TimedCall, http_figures
from pipeline.runtime.host import Host, HostedProgram, LoadFailed
from pipeline.runtime.tools import Tool

SEEDS = 3
"""Argument samples a tool. Those that end in a server error are left out, on both sides."""
INSTANCES, CHANGED = 1024, 900
"""Instances alive at once, and how many of them are changed, for the memory of one (GRPO in the paper: 64 prompts × 16
rollouts a step, arXiv 2602.10090)."""
INTERLEAVED = 256
REPEATS = 2000
"""Repetitions of what takes microseconds."""
CALLS = 400
"""Calls that are timed for one figure, at least."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """An environment under measurement."""

    environment: Environment
    program: HostedProgram
    calls: tuple[TimedCall, ...]
    build_ms: float
    load_ms: float


def measure(environments: Sequence[Environment], *, say: Callable[[str], None] = lambda _: None) -> dict[str, Any]:
    """All figures over these environments: the document that `awm-studio bench runtime --json` prints.

    `say` is told what is being measured; it takes about ten seconds an environment. Environments that do not load or
    of which no call succeeds are left out; raises UserError where none is left.
    """
    with Host() as host, ExitStack() as stack:
        say("loading")
        loaded = [found for env in environments if (found := _load(host, stack, env)) is not None]
        if not loaded:
            raise UserError("none of these environments loads and answers a call: see what awm-studio check says")
        ours = _our_figures(host, loaded, say)
    theirs = []
    for one in loaded:
        say(f"one server process for {one.environment.name}")
        theirs.append(http_figures(one.environment.code or "", one.program.template, one.calls, rounds=_rounds(one)))
    return {**ours, **_compared(ours, theirs), "environments": [one.environment.name for one in loaded]}


def _load(host: Host, stack: ExitStack, env: Environment) -> Loaded | None:
    if env.code is None or not env.schema:
        return None
    try:
        began = time.perf_counter()
        build = host.build(env)
        built = time.perf_counter()
        program = stack.enter_context(host.program(env, snapshot=build.snapshot, cache=False))
        ended = time.perf_counter()
    except LoadFailed:
        return None
    calls = _timed_calls(env, program)
    return Loaded(env, program, calls, (built - began) * 1e3, (ended - built) * 1e3) if calls else None


def _timed_calls(env: Environment, program: HostedProgram) -> tuple[TimedCall, ...]:
    calls = []
    for tool, seed in itertools.product(program.tools, range(SEEDS)):
        arguments = sample_arguments(tool.input_schema, program.template, seed=seed)
        with program.instance() as instance:
            reply = instance.call(tool.name, arguments)
            changes = instance.snapshot() != program.template
        if reply.ok:
            calls.append(TimedCall(tool, arguments, *_request(env, tool, arguments), changes))
    return tuple(calls)


def _request(env: Environment, tool: Tool, arguments: Mapping[str, Any]) -> tuple[str, dict[str, Any], Any]:
    """Path, query and JSON body of a call. What the spec does not say goes where its method usually has it."""
    said = next((op.parameters for op in env.operations if op.operation_id == tool.operation_id), {})
    in_path = set(re.findall(r"{(\w+)", tool.path))
    usual = "query" if tool.method in ("GET", "DELETE") else "body"
    query, body = {}, {}
    for name, value in arguments.items():
        parameter = said.get(name)
        place = parameter.get("param_type", usual) if isinstance(parameter, dict) else usual
        if name not in in_path:
            (query if place == "query" else body)[name] = value
    path = re.sub(r"{(\w+)[^}]*}", lambda match: str(arguments[match[1]]), tool.path)
    return path, query, body or None


def _our_figures(host: Host, loaded: Sequence[Loaded], say: Callable[[str], None]) -> dict[str, Any]:
    say("instances and resets")
    new, reset = zip(*(_pointer_moves(one) for one in loaded), strict=True)
    say("calls on one instance")
    alone = [_call_cpu(one, instances=1) for one in loaded]
    say(f"calls on {INTERLEAVED} instances in turn")
    interleaved = [_call_cpu(one, instances=INTERLEAVED) for one in loaded]
    say("calls made before")
    miss, hit = zip(*(_cached(host, one) for one in loaded), strict=True)
    say(f"memory of {INSTANCES} instances")
    return {
        "load_ms": _round(median(one.load_ms for one in loaded)),
        "build_ms": _round(median(one.build_ms for one in loaded)),
        "new_instance_us": _round(median(new)),
        "reset_us": _round(median(reset)),
        "call_us": _round(median(alone)),
        "interleaved_call_us": _round(median(interleaved)),
        "uncached_call_us": _round(median(miss)),
        "cached_call_us": _round(median(hit)),
        **_memory(loaded),
        "calls": sum(len(one.calls) for one in loaded),
    }


def _pointer_moves(one: Loaded) -> tuple[float, float]:
    """CPU µs of making an instance, and of resetting a changed one."""
    began = time.process_time()
    made = [one.program.instance() for _ in range(REPEATS)]
    new = (time.process_time() - began) / REPEATS
    call = max(one.calls, key=lambda call: call.changes)
    for instance in made[:INTERLEAVED]:
        instance.call(call.tool.name, call.arguments)
    began = time.process_time()
    for instance in made[:INTERLEAVED]:
        instance.reset()
    reset = (time.process_time() - began) / INTERLEAVED
    return new * 1e6, reset * 1e6


def _call_cpu(one: Loaded, *, instances: int) -> float:
    """CPU µs of a call, host and worker together."""
    held = [one.program.instance() for _ in range(instances)]
    worker = psutil.Process(one.program.stats()["pid"])
    count = 0
    began = time.process_time() + _cpu_seconds(worker)
    while count < CALLS * 2:
        for call, instance in zip(itertools.cycle(one.calls), held * -(-len(one.calls) // instances), strict=False):
            instance.call(call.tool.name, call.arguments)
            count += 1
    return (time.process_time() + _cpu_seconds(worker) - began) / count * 1e6


def _cached(host: Host, one: Loaded) -> tuple[float, float]:
    """Wall µs of calls made for the first time, and of the same calls made by another instance afterwards."""
    with host.program(one.environment, snapshot=one.program.template) as program:
        taken = []
        for _ in range(2):
            instance = program.instance()
            began = time.perf_counter()
            for call in one.calls:
                instance.call(call.tool.name, call.arguments)
            taken.append((time.perf_counter() - began) / len(one.calls) * 1e6)
        hits = program.stats()["cache"]["hits"]
    if hits < len(one.calls):
        raise UserError(f"{one.environment.name} does not repeat itself: {hits} of {len(one.calls)} calls were known.")
    return taken[0], taken[1]


def _memory(loaded: Sequence[Loaded]) -> dict[str, Any]:
    """Memory that 1,024 instances add, 900 of them changed, spread over all programs; host and workers together."""
    processes = [psutil.Process(), *(psutil.Process(one.program.stats()["pid"]) for one in loaded)]
    changing = [[call for call in one.calls if call.changes] or one.calls for one in loaded]
    states = sum(one.program.stats()["states"] for one in loaded)
    before = sum(process.memory_info().rss for process in processes)
    alive = []
    for number in range(INSTANCES):
        one, calls = loaded[number % len(loaded)], changing[number % len(loaded)]
        instance = one.program.instance()
        if number < CHANGED:
            turn = number // len(loaded)
            for step in range(4):  # turn's digits to the base of len(calls): no two instances the same calls
                call = calls[turn // len(calls) ** step % len(calls)]
                instance.call(call.tool.name, call.arguments)
        alive.append(instance)
    after = sum(process.memory_info().rss for process in processes)
    workers = sum(_own_memory(process) for process in processes[1:])
    return {
        "memory_kb_per_instance": _round((after - before) / 1024 / INSTANCES),
        "instances_alive": len(alive),
        "different_states": sum(one.program.stats()["states"] for one in loaded) - states,
        "workers_mb": round(workers / 2**20),
    }


def _compared(ours: Mapping[str, Any], theirs: Sequence[HttpFigures]) -> dict[str, Any]:
    start = median(figures.start_cpu_s for figures in theirs)
    in_session = median(figures.mcp_session_call_cpu_s for figures in theirs)
    over_mcp = median(figures.mcp_call_cpu_s for figures in theirs)
    over_http = median(figures.http_call_cpu_s for figures in theirs)
    floor = median(figures.floor_cpu_s for figures in theirs)
    memory = median(figures.memory_bytes for figures in theirs) / 1024
    return {
        "floor": {"sql_us": _round(floor * 1e6)},
        "server": {
            "start_cpu_ms": _round(start * 1e3),
            "mcp_session_call_us": _round(in_session * 1e6),
            "mcp_call_us": _round(over_mcp * 1e6),
            "http_call_us": _round(over_http * 1e6),
            "memory_kb": round(memory),
            "same_status": sum(figures.same_status for figures in theirs),
        },
        "ratios": {
            "new_instance": round(start * 1e6 / ours["new_instance_us"]),
            "reset": round(start * 1e6 / ours["reset_us"]),
            "call": _round(in_session * 1e6 / ours["call_us"]),
            "call_open_session": _round(over_mcp * 1e6 / ours["call_us"]),
            "call_plain_http": _round(over_http * 1e6 / ours["call_us"]),
            "cached_call": _round(ours["uncached_call_us"] / ours["cached_call_us"]),
            "memory": _round(memory / ours["memory_kb_per_instance"]),
            "call_over_floor": _round(ours["call_us"] / (floor * 1e6)),
        },
    }


def _rounds(one: Loaded) -> int:
    return -(-CALLS // len(one.calls))


def _cpu_seconds(process: psutil.Process) -> float:
    times = process.cpu_times()
    return times.user + times.system


def _own_memory(process: psutil.Process) -> int:
    """What a process uses, shared pages by its share of them where the system tells."""
    if os.name == "posix":
        try:
            return getattr(process.memory_full_info(), "pss", process.memory_info().rss)
        except psutil.AccessDenied:
            pass
    return process.memory_info().rss


def _round(value: float) -> float:
    """Three significant digits: more would be noise."""
    return float(f"{value:.3g}")
