"""A model of a few hundred thousand parameters and its tokenizer, made on the spot: nothing is downloaded.

It has the architecture and chat format of Qwen3, so that everything around it is what a real model meets. What it can
learn is narrow: it needs the vocabulary of its corpus, one line a tool, and a warm start.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict, Field

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast, Qwen3ForCausalLM

END, PAD = "<|im_end|>", "<|endoftext|>"
SPECIAL = (PAD, "<|im_start|>", END)
TAGS = ("<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>", "<think>", "</think>")

TEMPLATE = (
    "{%- for m in messages %}"
    "{%- if m.role == 'tool' %}"
    "{{- '<|im_start|>user\\n<tool_response>\\n' + m.content + '\\n</tool_response><|im_end|>\\n' }}"
    "{%- else %}"
    "{{- '<|im_start|>' + m.role + '\\n' + m.content + '<|im_end|>\\n' }}"
    "{%- endif %}"
    "{%- endfor %}"
    "{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}"
)
"""Qwen3's chat format without what it does to thinking parts, which are left as they are."""


class TinyModel(BaseModel):
    """The sizes of a tiny model."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    vocabulary: int = Field(default=1200, ge=300)
    """Tokens, the 256 bytes included; numbers of several digits come on top."""
    digits: int = Field(default=1, ge=1, le=3)
    """Numbers of up to so many digits are a token each. What is copied in one step is learned sooner, but a number that
    is seldom seen is hardly learned at all."""
    hidden: int = Field(default=64, ge=16)
    layers: int = Field(default=3, ge=1)
    heads: int = Field(default=4, ge=1)
    longest: int = Field(default=4096, ge=128)
    """Positions."""
    initializer_range: float = Field(default=0.1, gt=0)
    """The usual 0.02 never learns to copy at this width."""
    rope_theta: float = Field(default=1_000_000, gt=0)
    """The base of the position encoding, Qwen3's own: with the usual 10,000 such narrow heads see little of what stands
    further away, and what is copied stands a hundred tokens away."""
    seed: int = 0


def make_tokenizer(corpus: Iterable[str], vocabulary: int, digits: int = 1) -> PreTrainedTokenizerFast:
    """A byte-level BPE tokenizer for a corpus, with a token for every number of up to so many digits.

    Words and numbers are never merged with what is around them.
    """
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    split = pre_tokenizers.Split(Regex(r"[A-Za-z_]+|\d|[^A-Za-z_\d]+"), "isolated")
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [split, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary - len(TAGS), special_tokens=list(SPECIAL), initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(corpus, trainer)
    made = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token=END,
        pad_token=PAD,
        padding_side="left",
        clean_up_tokenization_spaces=False,
    )
    numbers = ("".join(number) for length in range(2, digits + 1) for number in product("0123456789", repeat=length))
    made.add_tokens([*TAGS, *numbers], special_tokens=False)  # as in Qwen3: added, but part of the text
    made.chat_template = TEMPLATE
    return made


def make_model(tokenizer: PreTrainedTokenizerFast, sizes: TinyModel) -> Qwen3ForCausalLM:
    """An untrained model for a tokenizer. The same seed gives the same parameters."""
    import torch
    from transformers import Qwen3Config, Qwen3ForCausalLM

    torch.manual_seed(sizes.seed)
    config = Qwen3Config(
        vocab_size=len(tokenizer),
        hidden_size=sizes.hidden,
        intermediate_size=3 * sizes.hidden,
        num_hidden_layers=sizes.layers,
        num_attention_heads=sizes.heads,
        num_key_value_heads=max(1, sizes.heads // 2),
        head_dim=max(16, sizes.hidden // sizes.heads),
        max_position_embeddings=sizes.longest,
        tie_word_embeddings=True,
        initializer_range=sizes.initializer_range,
        rope_parameters={"rope_type": "default", "rope_theta": sizes.rope_theta},
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    model = Qwen3ForCausalLM(config)
    assert model.generation_config is not None
    model.generation_config.eos_token_id = tokenizer.eos_token_id
    model.generation_config.pad_token_id = tokenizer.pad_token_id
    return model
