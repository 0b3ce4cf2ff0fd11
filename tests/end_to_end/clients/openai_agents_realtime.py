"""The tool loop as a RealtimeAgent of the OpenAI Agents SDK runs it, in text."""

from __future__ import annotations

from agents.realtime import RealtimeAgent, RealtimeRunConfig, RealtimeRunner

from tests.support.vault import MODEL, QUESTION, Session, Way

from .openai_agents import tools_of


async def agent(session: Session) -> None:
    librarian = RealtimeAgent(name="librarian", instructions="Be brief.", tools=tools_of(session))
    # Run beside each other, tools are answered one by one, and the SDK asks for the answer to the first alone.
    settings: RealtimeRunConfig = {"model_settings": {"modalities": ["text"]}, "async_tool_calls": False}
    runner = RealtimeRunner(librarian, config={**settings, "tracing_disabled": True})
    url = session.url.replace("http://", "ws://") + f"/realtime?model={MODEL}"
    text, calls = "", 0
    async with await runner.run(model_config={"url": url, "api_key": "anything"}) as talk:
        await talk.send_message(QUESTION)
        async for event in talk:
            assert event.type != "error", event
            if event.type != "raw_model_event":
                continue
            match event.data.type:
                case "output_text_delta":
                    text += event.data.delta
                case "function_call":
                    calls += 1
                case "turn_ended":
                    session.say(text)
                    if not calls:
                        return
                    text, calls = "", 0
                case _:
                    pass


WAYS: dict[str, dict[str, Way]] = {"realtime": {"agent": agent}}
