"""Shows one chat: its calls, folds, pictures, status and tokens.

Knows how to compute all this from the text and the ledger; Lua knows how to draw it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from parley.chat.transcript import YES, Proposal, ToolCall
from parley.display.view import ChatView, details, drawing
from parley.engine import Observation, previews_of, with_own_tools
from parley.engine.ports import ChatSettings
from parley.models.agent_offers import AgentOffer
from parley.models.events import RateLimits, Usage
from parley.nvim.agent_choices import known_offer
from parley.nvim.chat_buffer import ChatBuffer
from parley.nvim.folds import FoldTexts, exchange_folds, folds
from parley.nvim.pictures import picture_rows, pictures_of
from parley.nvim.sightings import SeenCalls
from parley.nvim.tokens import Tokens
from parley.policy.choice import exchange_at, open_keys
from parley.policy.doubts import Seen, sighting
from parley.policy.previews import Previews
from parley.tools.catalogue import Catalogue


class ChatScreen:
    """Shows a chat to the user."""

    def __init__(self, buffer: ChatBuffer) -> None:
        self._buffer = buffer
        self._editor = buffer.editor
        self.catalogue: Catalogue | None = None
        """The last request's tools, because drawing does not start servers; None before the first
        request.
        """
        self.tokens = Tokens()
        self._previews: Previews = {}
        """What the calls would do to files, as last drawn."""
        self._seen_calls = SeenCalls()
        self._fold_texts = FoldTexts()
        self._doing = ("", 0)
        """The current status, and the handle of its turn."""
        self._question = ""
        self._waiting = 0
        self._has_pictures = False
        self._offer = AgentOffer()
        """What the agent offers, as Lua knows it."""

    # --- The text ---

    async def draw(self) -> ChatView:
        """Draw the chat, from the text that Neovim last reported."""
        buffer = self._buffer
        tick, transcript, lines = buffer.mirror.tick, buffer.transcript, buffer.mirror.text.lines
        settings = buffer.resolve(transcript)
        self._editor.tell("agent", buffer.buf, settings.agent)
        self.tell_offer()
        known = self._known(settings)
        known = known and with_own_tools(
            known, transcript, settings.request.tool_room, settings.skills
        )
        ledger = buffer.app.ledger(buffer.path)
        missing = await buffer.app.attachments(buffer.path).missing(transcript)
        previews = await previews_of(
            buffer.app.workspace.previews(buffer.folder), transcript.exchanges, known or Catalogue()
        )
        self._previews = previews
        view = ChatView(transcript, known, ledger.view(open_keys(transcript)), missing, previews)
        for news in ledger.news():
            self._editor.message(news, "warn")
        rows, texts = self._fold_texts.rows(folds(view))
        drawn = {**drawing(view, buffer.app.settings.keys), "folds": rows, "texts": texts}
        drawn["sightings"] = self._seen_calls.draw(view)
        if await self._editor.ask("draw", buffer.buf, tick, drawn):  # False if the text has changed
            self.waits(len(drawn["proposals"]))
            self._draw_pictures(tick, picture_rows(transcript, lines))
        return view

    def tell_offer(self) -> None:
        """Send Lua the words that the agent offers, if they have changed."""
        if (offer := known_offer(self._buffer)) != self._offer:
            self._offer = offer
            words = [f"mode={each.word}" for each in offer.modes]
            words += [f"model={each.word}" for each in offer.models]
            commands = [{"name": each.word, "about": each.about} for each in offer.commands]
            self._editor.tell("agent_offer", self._buffer.buf, words, commands)

    def draw_calls(self, row: int) -> list[ToolCall]:
        """Draw the calls in the exchange at a row. Returns the approved calls without a result."""
        buffer, transcript = self._buffer, self._buffer.transcript
        at = exchange_at(transcript, row)
        if at is None or not buffer.mirror.is_known:
            return []
        exchange = transcript.exchanges[at]
        ledger = buffer.app.ledger(buffer.path)
        keys = open_keys(transcript)
        view = ChatView(transcript, self.catalogue, ledger.view(keys), (), self._previews)
        rows, texts = self._fold_texts.rows(exchange_folds(view, [exchange]))
        span = {"first": exchange.span.start, "last": exchange.span.end}
        drawn = {"folds": rows, "texts": texts, **span}
        self._editor.tell("folds", buffer.buf, buffer.mirror.tick, drawn)
        proposals = [p for answer in exchange.answers[-1:] for p in answer.proposals]
        return [p.call for p in proposals if p.choice in YES and p.result is None]

    def _draw_pictures(self, tick: int, rows: list[tuple[int, str]]) -> None:
        """Draw pictures below rows of the text at a changedtick, and remove stale pictures."""
        if rows or self._has_pictures:
            self._has_pictures = bool(rows)
            self._editor.tell("pictures", self._buffer.buf, tick, rows)

    async def prove_pictures(self, paths: Sequence[str]) -> None:
        """Check the picture files to draw, and send Lua the paths of the valid files."""
        buffer = self._buffer
        pictures = pictures_of(buffer.transcript, paths)
        contents = await buffer.app.attachments(buffer.path).read(pictures)
        from parley.storage.forks import own_path

        folder = own_path(buffer.path).parent
        files = {
            path: str(folder / path) if isinstance(contents.get(path), bytes) else ""
            for path in paths
        }
        self._editor.tell("picture_files", buffer.buf, files)

    def _known(self, settings: ChatSettings) -> Catalogue | None:
        """The tools, as far as they are known without starting servers: an agent of another program
        has tools of its own, and asks Parley for the workspace's.
        """
        known = self.catalogue or self._buffer.app.servers.known()
        own = settings.tools(Catalogue()) if settings.tools else Catalogue()
        return settings.tools(known or Catalogue()) if own.tools and settings.tools else known

    # --- Calls ---

    def show_result(self, call: Proposal) -> None:
        """Show the details of a call that has a result, or that others ran."""
        known = self.catalogue or self._buffer.app.servers.known()
        tool = known.get(call.call.name) if known and not call.ran_by else None
        self._editor.tell("float", details(call, tool), self._buffer.buf, 0)

    def show_call(self, call: Proposal, observation: Observation) -> None:
        """Show the details of a call without a result, as observed for the next request."""
        approvals = observation.situation.approvals
        lapse = approvals.lapsed(call)
        ledger = self._buffer.app.ledger(self._buffer.path)
        before = ledger.definition(lapse.digest) if lapse else None
        now = sighting(call, approvals)
        number = self._seen_calls.number(now) or self._seen_calls.number(replace(now, digest=""))
        tool = observation.catalogue.get(call.call.name)
        text = details(call, tool, before, approvals.preview(call))
        has_review = (preview := approvals.preview(call)) is not None and preview.is_one_text
        self._editor.tell("float", text, self._buffer.buf, number, has_review)

    def review(self, call: Proposal, observation: Observation) -> bool:
        """Open the change by a waiting call as a diff; False if there is none to open."""
        approvals = observation.situation.approvals
        preview = approvals.preview(call)
        if preview is None or not preview.is_one_text:
            return False
        (change,) = preview.changes
        diff = {"path": change.path, "before": change.before, "after": change.after or ""}
        number = self._seen_calls.number(sighting(call, approvals))
        self._editor.tell("review", self._buffer.buf, call.span.start, number, diff)
        return True

    def number(self, view: ChatView, call: Proposal) -> int:
        """The number under which a call is drawn."""
        return self._seen_calls.number(view.sighting(call))

    def seen(self, calls: Iterable[tuple[int, float]]) -> Seen:
        """The calls that were on the screen, from their numbers and milliseconds."""
        return Seen(self._seen_calls.of(calls), self._buffer.app.least_seen_s)

    # --- The status line ---

    def status(self, text: str, handle: int) -> None:
        """Show the current status; "" removes it."""
        self._doing = text, handle
        self._editor.tell("status", self._buffer.buf, text and (self._question or text), handle)

    def waits(self, calls: int) -> None:
        """Send Lua the number of waiting calls, if it has changed."""
        if calls != self._waiting:
            self._waiting = calls
            self._editor.tell("waiting", self._buffer.buf, calls)

    @property
    def has_waiting_calls(self) -> bool:
        """Whether calls were waiting for a choice when the chat was last drawn."""
        return self._waiting > 0

    def waits_for(self, question: str) -> None:
        """Show a question to the user instead of the status; "" when all questions are answered."""
        self._question = question
        self.status(*self._doing)

    def used(self, what: Usage | RateLimits) -> None:
        """Record the running request's tokens, or its provider's limits."""
        self.tokens.say(what)
        self._editor.tell("usage", self._buffer.buf, self.tokens.table())
