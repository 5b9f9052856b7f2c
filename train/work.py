"""The process that works on a training: `python -m train.work WORKSPACE RUN`, alone or several under accelerate."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from curation.subset import TEST, TRAIN
from pipeline.engine.lock import work_on
from pipeline.errors import UserError
from pipeline.llm.client import Client
from pipeline.llm.replies import FILE_NAME, Replies
from pipeline.records import Run
from pipeline.runtime.host import Host
from pipeline.workspace import Workspace
from train import training_run
from train.collect import Collected, Collector, Loop
from train.config import TrainConfig
from train.demonstrations import complete_records, corpus, demonstrate, is_complete
from train.judge import ModelJudge
from train.policy_model import load_model, load_start, load_tokenizer, save
from train.programs import Programs
from train.records import Records
from train.run_log import RunLog, last_checkpoint, read_metrics
from train.samples import rows
from train.scoring import Scorer
from train.tokens import Codec, token_turns
from train.trajectory import Trajectory
from train.worlds import Task, Worlds, subset_named, tasks_of_subset

CHECKPOINTS, START, WARM, MODEL = "checkpoints", "start", "warmup", "model"
"""In a run's folder: checkpoints, the model to begin with, the one after the warm start, and the trained one."""


class Stopped(Exception):
    """The run was asked to stop, and everything it needs to go on is on disk."""


@dataclass
class Session:
    """What a training has at hand: its folder and configuration, its tasks, and what runs environments."""

    config: TrainConfig
    folder: Path
    log: RunLog
    loop: Loop
    worlds: Worlds
    programs: Programs
    scorer: Scorer
    records: Records
    train: list[Task]
    test: list[Task]
    call_timeout_s: float
    runs: Path
    progress: Callable[[int], None]

    def demonstrations(self) -> list[Trajectory]:
        """What the warm start learns from, and a tiny model's tokenizer is made for."""
        wanted, found = self.config.warmup, []
        if wanted.solutions:
            found = self.loop.run(
                demonstrate(
                    self.train,
                    self.worlds,
                    self.programs,
                    self.scorer,
                    self.config.rules,
                    nested=wanted.nested,
                    spoilt=wanted.spoilt,
                )
            )
        return [*found, *complete_records((self.runs / str(run) for run in wanted.runs), self.train)]


def main(arguments: Sequence[str]) -> int:
    """Work on a training until it is done, stopped or failed; returns the exit code. All three are written down."""
    place, number = arguments
    first = os.environ.get("RANK", "0") == "0"
    with Workspace.open(place) as workspace:
        run = training_run.find(workspace, int(number))
        folder = workspace.runs / str(run.id)
        log = RunLog(folder, first=first)
        with work_on(folder, run.id) if first else nullcontext():
            log.stop_on_signals()
            log.status(state="running", phase="starting", detail="")
            log.rewind(checkpoint[1] if (checkpoint := last_checkpoint(folder / CHECKPOINTS)) else 0)
            if first:
                workspace.catalog.update_run(run.id, state="running", pid=os.getpid())
            state, detail, code = _outcome(workspace, run, log)
            log.status(state=state, detail=detail)
            log.event("end", state=state, detail=detail)
            if first:
                result = training_run.figures(workspace, run)
                workspace.catalog.update_run(run.id, state=state, pid=None, result=result)
    if detail:
        print(f"awm-studio: {detail}", file=sys.stderr)
    return code


def _outcome(workspace: Workspace, run: Run, log: RunLog) -> tuple[str, str, int]:
    """Do it; returns the state it ends in, the reason if there is one, and the exit code."""
    try:
        with _session(workspace, run, log) as session:
            train(session)
    except Stopped:
        return "stopped", "", 130
    except KeyboardInterrupt:
        return "stopped", "It was interrupted before its step was done.", 130
    except UserError as error:
        return "failed", str(error), 2
    except Exception as error:
        if reason := _known(error):
            return "failed", reason, 2
        traceback.print_exc()
        return "failed", f"{type(error).__name__}: {error}", 1
    return "done", "", 0


def _known(error: Exception) -> str:
    """What an exception of PyTorch, of TRL's configuration or of the disk means in a sentence, if that is known."""
    import errno

    import torch

    text = str(error)
    if isinstance(error, torch.OutOfMemoryError) or "can't allocate memory" in text or isinstance(error, MemoryError):
        return (
            "The memory is used up: lower grpo.rows_at_once, per_device_train_batch_size or most_tokens, or "
            "vllm_gpu_memory_utilization, then resume."
        )
    if isinstance(error, OSError) and error.errno == errno.ENOSPC:
        return "The disk is full: free some space, then resume."
    if isinstance(error, TypeError) and "Config.__init__() got an unexpected keyword" in text:
        return f"The installed version of TRL does not know a field of the preset ({text})."
    if isinstance(error, ValueError) and "trl" in ((error.__traceback__ and _origin(error)) or ""):
        return f"TRL does not take these settings: {text}"
    return ""


def _origin(error: Exception) -> str:
    """The file in which an exception was raised."""
    frames = traceback.extract_tb(error.__traceback__)
    return frames[-1].filename if frames else ""


@contextmanager
def _session(workspace: Workspace, run: Run, log: RunLog) -> Generator[Session]:
    """Everything a training needs, closed afterwards."""
    import torch
    from transformers.utils.logging import disable_progress_bar

    folder = workspace.runs / str(run.id)
    config = training_run.config_of(folder)
    if config.threads is not None:
        torch.set_num_threads(config.threads)
    disable_progress_bar()
    steps = config.grpo.steps * config.grpo.updates

    def progress(done: int) -> None:
        if log.is_first:
            workspace.catalog.add_event(run.id, "progress", {"done": done, "total": steps})

    subset = subset_named(workspace.catalog, run.config["subset"])
    worlds = Worlds(workspace.catalog, subset)
    with ExitStack() as stack:
        loop = stack.enter_context(Loop())
        host = stack.enter_context(Host.from_settings(workspace.settings))
        judge = None
        if config.rewards.by != "code" and config.judge is not None:
            replies = Replies(workspace.path / FILE_NAME)
            stack.callback(replies.close)
            client = Client(replies)
            stack.callback(lambda: loop.run(client.close()))
            judge = ModelJudge(client, workspace.settings.profiles[config.judge])
        programs = Programs(host, worlds.environment, config.rules, limit=config.programs)
        stack.callback(lambda: loop.run(programs.__aexit__(None, None, None)))
        yield Session(
            config=config,
            folder=folder,
            log=log,
            loop=loop,
            worlds=worlds,
            programs=programs,
            scorer=Scorer(host, config.rewards, judge=judge),
            records=stack.enter_context(Records(folder)),
            train=tasks_of_subset(subset, TRAIN),
            test=tasks_of_subset(subset, TEST)[: config.evaluation.tasks],
            call_timeout_s=workspace.settings.call_timeout_s,
            runs=workspace.runs,
            progress=progress,
        )


def train(session: Session) -> None:
    """Warm start, reinforcement, and trying held-out tasks before and after. Raises Stopped where that was asked."""
    start, warm = session.folder / START, session.folder / WARM / MODEL
    made = (start / "config.json").is_file() or session.config.model.tiny is None
    demonstrations = [] if made and (warm.is_dir() or not session.config.warmup.steps) else session.demonstrations()
    place = load_start(session.config.model, corpus(demonstrations), start)
    tokenizer = load_tokenizer(place)
    codec = Codec(tokenizer, str(session.config.model.name or "the tiny model"))
    if session.config.warmup.steps and not warm.is_dir():
        _warm_up(session, place, tokenizer, codec, demonstrations)
    _reinforce(session, warm if warm.is_dir() else place, tokenizer, codec)


def _warm_up(
    session: Session, place: Path | str, tokenizer: Any, codec: Codec, demonstrations: Sequence[Trajectory]
) -> None:
    from train.sft import warm_up
    from train.watch import Watch

    config, log = session.config, session.log
    log.status(phase="warmup", warmup_steps=config.warmup.steps)
    learned = [row for record in demonstrations for row in rows(token_turns(record, codec), merge=True)]
    log.event("begin", phase="warmup", demonstrations=len(demonstrations), rows=len(learned))
    watch = Watch(log, "warmup", "warmup_step")
    model = warm_up(
        load_model(place, config.model),
        tokenizer,
        learned,
        steps=config.warmup.steps,
        options=config.warmup.options,
        folder=session.folder / WARM,
        watch=watch,
        seed=config.seed,
        vary_numbers=config.warmup.vary_numbers,
        vary_words=config.warmup.vary_words,
        peft_config=_lora(config),
    )
    if watch.stopped:
        raise Stopped
    save(model, tokenizer, session.folder / WARM / MODEL)


def _reinforce(session: Session, place: Path | str, tokenizer: Any, codec: Codec) -> None:
    from transformers import PrinterCallback

    from train.grpo import Grouping, GRPOConfig, WindowTrainer, task_rows
    from train.watch import Between, Watch

    config, log, checkpoints = session.config, session.log, session.folder / CHECKPOINTS
    log.status(phase="loading", steps=config.grpo.steps)
    watch = Watch(log, "step", "step", updates=config.grpo.updates)
    model = load_model(place, config.model)
    collector = Collector(
        session.loop,
        session.worlds,
        session.programs,
        session.scorer,
        codec,
        config.rules,
        config.most_tokens,
        policy=config.model.name or "tiny",
        call_timeout_s=session.call_timeout_s,
    )
    trainer = WindowTrainer(
        model=model,
        args=GRPOConfig(**grpo_fields(config, checkpoints)),
        train_dataset=task_rows(session.train),
        processing_class=tokenizer,
        callbacks=[watch],
        peft_config=None if hasattr(model, "peft_config") else _lora(config),
        collector=collector,
        grouping=Grouping(config.grpo.merge_rows, config.grpo.rows_at_once, config.grpo.shuffle_rewards),
        collected=lambda rollouts: _keep(session, rollouts),
        beat=lambda live: log.status(live=live),
    )
    trainer.remove_callback(PrinterCallback)
    if config.evaluation.every:
        every = config.evaluation.every * config.grpo.updates
        trainer.add_callback(Between(every, lambda step: _try_out(session, trainer, step)))
    last = last_checkpoint(checkpoints)
    done = last[1] if last else 0
    if last:
        log.event("resumed", step=done)
    elif not read_metrics(session.folder, "try"):
        log.event("begin", phase="grpo", step=0, parameters=sum(p.numel() for p in model.parameters()))
        _try_out(session, trainer, 0)
    log.status(phase="training", step=done)
    if config.grpo.steps:
        trainer.train(resume_from_checkpoint=str(last[0]) if last else None)
        if watch.stopped:
            raise Stopped
        session.progress(trainer.state.global_step)
        _try_out(session, trainer, trainer.state.global_step)
    if trainer.accelerator.is_main_process:
        save(trainer.accelerator.unwrap_model(trainer.model), tokenizer, session.folder / MODEL)


def grpo_fields(config: TrainConfig, output: Path) -> dict[str, Any]:
    """The fields of `trl.GRPOConfig` that a configuration means."""
    ours = {
        "output_dir": str(output),
        "max_steps": config.grpo.steps * config.grpo.updates,
        "max_completion_length": config.most_tokens,
        "logging_steps": 1,
        "disable_tqdm": True,
        "seed": config.seed,
    }
    return {"report_to": "none", **config.grpo.options, **ours}


def _lora(config: TrainConfig) -> Any:
    if config.lora is None:
        return None
    from peft import LoraConfig

    fields: dict[str, Any] = {"task_type": "CAUSAL_LM", **config.lora}
    return LoraConfig(**fields)


def _keep(session: Session, rollouts: Sequence[Collected]) -> None:
    """Write a generation's rollouts down, where its step's are to be, and say that the steps before are done."""
    session.progress((rollouts[0].trajectory.step or 1) - 1)
    for rollout in rollouts:
        step = rollout.trajectory.step or 0
        if (step - 1) % session.config.records_every == 0:
            session.records.add(rollout.trajectory)


def _try_out(session: Session, trainer: Any, step: int) -> None:
    """Try held-out tasks, and write down how many were complete."""
    if not session.test:
        return
    session.log.status(phase="trying", live=0)
    tasks = [task for task in session.test for _ in range(session.config.evaluation.tries)]
    records = [rollout.trajectory for rollout in trainer.try_out(tasks, session.config.grpo.trajectories)]
    judged = [record for record in records if record.reward is not None and not record.reward.excluded]
    complete = sum(map(is_complete, judged))
    session.log.event(
        "try",
        step=step,
        tasks=len(session.test),
        tried=len(records),
        judged=len(judged),
        complete=complete,
        rate=round(complete / len(judged), 4) if judged else None,
        ends={end: sum(record.end == end for record in records) for end in sorted({record.end for record in records})},
    )
    session.log.status(phase="training")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
