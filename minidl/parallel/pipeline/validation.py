"""validate: whether a schedule computes every micro-batch once, in an order that is possible."""

from __future__ import annotations

from minidl.parallel.pipeline.action import KINDS, Action
from minidl.parallel.pipeline.clock import simulate
from minidl.parallel.pipeline.schedule import Schedule, ScheduleError


def validate(schedule: Schedule) -> None:
    """Raise ScheduleError, which names the first bad action and why, unless the schedule can be executed.

    Each stage computes, for every micro-batch and each of its chunks, F once and then B, or I and then W; and every
    update after the gradients that it applies. No stage waits for ever.

    >>> from minidl.parallel import pipeline
    >>> validate(pipeline.Listed.read(["F0 B0 F1 U0"]))
    Traceback (most recent call last):
    minidl.parallel.pipeline.schedule.ScheduleError: stage 0: U0 (update) needs B1 or W1, which is missing
    """
    for stage in range(schedule.stages):
        _validate_stage(schedule, stage)
    simulate(schedule)  # raises if stages wait for each other


def _validate_stage(schedule: Schedule, stage: int) -> None:
    mine = schedule.chunks_of(stage)
    done: set[Action] = set()
    everything = {_as_counted(schedule, action) for action in schedule.actions(stage)}
    for action in schedule.actions(stage):
        if why := _why_bad(schedule, stage, mine, action, done, everything):
            kind = f" ({KINDS[action.kind]})" if action.kind in KINDS else ""
            raise ScheduleError(f"stage {stage}: {schedule.text(action)}{kind} {why}")
        done.add(_as_counted(schedule, action))
    for needed in _all_actions(schedule, mine, done):
        if needed not in done:
            raise ScheduleError(f"stage {stage}: {schedule.text(needed)} ({KINDS[needed.kind]}) is missing")


def _why_bad(
    schedule: Schedule, stage: int, mine: list[int], action: Action, done: set[Action], everything: set[Action]
) -> str:
    """Why this stage cannot do the action now, after those that are done; "" if it can."""
    kind, micro_batch, chunk = action.kind, action.micro_batch, action.chunk
    if kind not in KINDS:
        return f"is of no known kind: choose one of {', '.join(KINDS)}"
    if chunk not in mine:
        return (
            f"is on the wrong stage: it has {'chunk' if len(mine) == 1 else 'the chunks'} {', '.join(map(str, mine))}"
        )
    if not 0 <= micro_batch < schedule.micro_batches:
        return f"is of a micro-batch that there is not: the last one is {schedule.micro_batches - 1}"
    if _as_counted(schedule, action) in done:
        return "is there twice"
    if kind == "B" and Action("I", micro_batch, chunk) in done:
        return f"computes the gradient of the inputs again, after {schedule.text(Action('I', micro_batch, chunk))}"
    if kind in "IW" and Action("B", micro_batch, chunk) in done:
        return f"computes again what {schedule.text(Action('B', micro_batch, chunk))} has computed"
    if kind != "U" and _as_counted(schedule, Action("U", micro_batch, chunk)) in done:
        return "comes after the update that needs it"
    for needed in _needs(schedule, stage, action):
        if not needed & done:
            either = " or ".join(schedule.text(each) for each in sorted(needed & everything or needed, key=str))
            return f"comes before {either}" if needed & everything else f"needs {either}, which is missing"
    return ""


def _as_counted(schedule: Schedule, action: Action) -> Action:
    """The action; for the one update of a synchronous schedule, whose number is free, that with number 0."""
    return Action("U", 0, action.chunk) if action.kind == "U" and not schedule.is_asynchronous else action


def _needs(schedule: Schedule, stage: int, action: Action) -> list[set[Action]]:
    """What the stage must have done before the action: of each set, one."""
    kind, m, chunk = action.kind, action.micro_batch, action.chunk
    if kind == "W":
        return [{Action("I", m, chunk)}]
    if kind == "U":
        applied = [m] if schedule.is_asynchronous else range(schedule.micro_batches)
        return [{Action("B", each, chunk), Action("W", each, chunk)} for each in applied]
    forward, before, after = Action("F", m, chunk), chunk - 1, chunk + 1
    if kind == "F":
        return [{Action("F", m, before)}] if chunk and schedule.place(before) == stage else []
    needs = [{forward}]
    if after < schedule.chunks and schedule.place(after) == stage:
        needs.append({Action("B", m, after), Action("I", m, after)})
    return needs


def _all_actions(schedule: Schedule, mine: list[int], done: set[Action]) -> list[Action]:
    """What the stage must do: for each micro-batch F and B, or F, I and W; and the updates."""
    needed = []
    for chunk in mine:
        for m in range(schedule.micro_batches):
            is_split = Action("I", m, chunk) in done
            needed += [Action(kind, m, chunk) for kind in ("FIW" if is_split else "FB")]
        updates = range(schedule.micro_batches) if schedule.is_asynchronous else [0]
        needed += [Action("U", m, chunk) for m in updates]
    return needed
