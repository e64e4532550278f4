"""Texts of so many tokens, made of common English words. Pure."""

from __future__ import annotations

import hashlib

_WORDS = (
    " the and for are but not you all any can had her was one our out day get has him his how"
    " man new now old see two way who boy did its let put say she too use act add age ago air"
    " arm art ask bad bag bar bed big bit box bus buy car cat cup cut dog dry due ear eat egg"
    " end eye far few fit fly fun gas got guy hat hit hot ice job key kid law lay led leg lie"
    " lot low map may met mix nor off oil own pay per pen pop ran raw red run sat sea set sir"
    " sit six sky son sun tax tea ten tie tip top toy try win won yes yet dad mom aid aim bet"
    " bid bin bow bug cap cow cry dig era fan fat fed fee fix fog fox gap gym hid hip hub ill"
    " ink jet joy lab lap lip log mad mud net nut odd pan pet pie pin pit pot ray rid rob row"
    " rub sad saw shy ski sum tap tag tin ton tub van vet via wet zip web app cab ate fur hen"
    " hay ham jam jar kit lid mat mob nap oak owl pad pig rib rim rod rug sew sip sob spy tan"
    " toe tow tug wax wig ace ash bat bay bee cop dot elf fig jaw jug ore peg pro rag ram rip"
    " sap tab vow why zoo lit men pre owe bye hey god pub wit"
)
"""256 words of three letters. With the space before it, each is one token by the rule of
`core.tokens_and_fragments`, and for the tokenizers `cl100k_base`, `o200k_base` and `p50k_base` of
OpenAI and the one that Anthropic published for Claude 2."""

_LENGTH = 4
"""The bytes of a word and its space."""


def words(count: int, seed: str) -> str:
    """So many words, each with a space before it; the same for the same seed, of which fewer words
    are the beginning."""
    drawn = hashlib.shake_256(seed.encode("utf-8", "surrogatepass")).digest(count)
    starts = (_LENGTH * number for number in drawn)
    return "".join([_WORDS[start : start + _LENGTH] for start in starts])
