"""What each API cannot express, written by hand: by name, the projection of a turn.

`WireProtocol.project` encodes and decodes. A mistake that encoder and decoder share would be
invisible in it, so the laws compare it with these.
"""

from tests.wire.protocols.projections import (
    ag_ui,
    anthropic_messages,
    bedrock_converse,
    cohere,
    gemini,
    gemini_interactions,
    gemini_live,
    ollama,
    openai_chat,
    openai_completions,
    openai_realtime,
    openai_responses,
)

PROJECTIONS = {
    "chat": openai_chat.project,
    "responses": openai_responses.project,
    "anthropic": anthropic_messages.project,
    "gemini": gemini.project,
    "interactions": gemini_interactions.project,
    "agui": ag_ui.project,
    "ollama": ollama.project,
    "completions": openai_completions.project,
    "cohere": cohere.project,
    "bedrock": bedrock_converse.project,
    "realtime": openai_realtime.project,
    "live": gemini_live.project,
}
