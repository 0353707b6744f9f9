"""The gated tools: their effects, what a call of one does, and what the client is told."""

from __future__ import annotations

import contextvars
import json
import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ..authority import Budget
from ..effect import AsyncEffect
from ..errors import BadArguments, DefiniteNo, DefinitionError, InterlockError, MissingRequestKey, NotSent, describe
from ..gate import Gate
from ..outcome import Outcome, Reason
from ..redaction import clean
from ..rules import Asked
from .config import KEY, REQUEST, Config, Reading, Rule, fill, filled
from .schemas import invalid, misfit, schemas_of, shown_schema, untaken
from .server import Server, ServerError

log = logging.getLogger("interlock_tools")

OUTCOME = "interlock/outcome"
"""Where a result's ``_meta`` holds the outcome."""

ENVELOPE = "io.modelcontextprotocol/"
"""What begins the names of those ``_meta`` fields that every request carries in revisions without a handshake."""


class ToolFailed(Exception):
    """The tool answered with an error. Whether it had acted before is not known."""


@dataclass
class Live:
    """A call that a client waits for: its ``_meta``, and the server's answer to it as it was."""

    meta: dict[str, Any] = field(default_factory=dict)
    result: dict[str, Any] | None = None


_live: contextvars.ContextVar[Live | None] = contextvars.ContextVar("live", default=None)


class Gating:
    """The tools that a configuration gates, on a gate.

    Raises:
        DefinitionError: a package that it needs is missing, or an effect cannot be declared.
    """

    def __init__(self, gate: Gate, config: Config) -> None:
        try:
            import jsonschema  # noqa: F401
        except ModuleNotFoundError:
            raise DefinitionError("the proxy needs jsonschema; pip install 'interlock-tools[mcp]'") from None
        self.gate = gate
        self.config = config
        self.server: Server | None = None
        self.envelope: dict[str, Any] = {}
        self.schemas: dict[str, dict[str, Any]] | None = None
        self.effects = {name: self._declare(rule) for name, rule in config.rules.items()}

    # -- effects -------------------------------------------------------------------------------------

    def _declare(self, rule: Rule) -> AsyncEffect[Any]:
        async def send(request: str, arguments: dict[str, Any], *, idempotency_key: str, on_send: Any) -> Any:
            if rule.key_argument is not None:
                arguments = {**arguments, rule.key_argument: idempotency_key}
            return await self._send(rule, arguments, on_send)

        async def premises(request: str, arguments: dict[str, Any]) -> Any:
            assert rule.premises is not None
            return _facts(await self._read(rule, rule.premises, {**arguments, REQUEST: request}), rule.premises)

        async def lookup(request: str, arguments: dict[str, Any], idempotency_key: str) -> Any:
            assert rule.lookup is not None
            return await self._read(rule, rule.lookup, {**arguments, REQUEST: request, KEY: idempotency_key}) or None

        def budget(request: str, arguments: dict[str, Any]) -> list[Budget]:
            return self._budgets(rule, request, arguments)

        declare = self.gate.effect(
            rule.effect,
            key=lambda request, arguments: _key(rule, request, arguments),
            premises=premises if rule.premises else None,
            expect=rule.expect,
            requires_approval=rule.requires_approval,
            amount=(lambda arguments: _amount(rule, arguments)) if rule.amount else None,
            budget=budget if self.config.limits else None,
            dedupes=rule.dedupes,
            lookup=lookup if rule.lookup else None,
            lookup_lag=rule.lookup_lag,
            natural_key=rule.lookup is not None and KEY not in rule.lookup.names,
            send_timeout=rule.send_timeout,
        )
        effect: AsyncEffect[Any] = declare(send)
        return effect

    def _budgets(self, rule: Rule, request: str, arguments: dict[str, Any]) -> list[Budget]:
        """What a call takes of the limits. Raises ``BadArguments`` where that cannot be told: a limit never lets by."""
        values = {**arguments, REQUEST: request}
        limits = [limit for limit in self.config.limits if limit.is_for(rule.effect)]
        for limit in limits:
            missing = sorted(name for name in limit.names - {"effect", "request_key"} if values.get(name) is None)
            if missing:
                raise BadArguments(
                    f"{rule.tool}: limit {limit.name} counts by {missing[0]}, which this call does not give"
                )
        amount = _amount(rule, arguments) if rule.amount else None
        asked = Asked(rule.effect, _key(rule, request, arguments), values, amount)
        found = [limit.budget(asked, self.gate.rules.now_ms()) for limit in limits]
        return [budget for budget in found if budget is not None]

    async def _send(self, rule: Rule, arguments: dict[str, Any], on_send: Any) -> Any:
        """Call the tool. Its answer is the evidence; one that says that it failed proves nothing unless declared so."""
        if self.server is None or self.server.gone:
            raise NotSent("the MCP server is not running")
        try:
            wrong = await self._wrong(rule)
        except InterlockError as error:
            wrong = describe(error)
        if wrong is not None:
            raise NotSent(wrong)
        live = _live.get()
        meta = {**self.envelope, **(live.meta if live is not None else {})}
        result = await self.server.request("tools/call", _params(rule.tool, arguments, meta), on_send)
        if result.get("resultType") == "input_required":
            raise ToolFailed("it asks for input in the middle of a call, which a gated tool cannot be given")
        if result.get("isError"):
            words = clean(_text(result), 300)
            raise DefiniteNo(words) if rule.error_proves_nothing_done else ToolFailed(words)
        if live is not None:
            live.result = result
        return _kept(result)

    async def _read(self, rule: Rule, reading: Reading, values: Mapping[str, Any]) -> Any:
        """Call a reading tool and return what it says, as JSON values."""
        assert self.server is not None
        if (wrong := await self._wrong(rule)) is not None:
            raise ServerError(wrong)
        arguments = filled(reading.arguments, values)
        result = await self.server.request("tools/call", _params(reading.tool, arguments, self.envelope))
        if result.get("isError"):
            raise ServerError(f"{reading.tool}: {clean(_text(result), 200)}")
        found = result.get("structuredContent")
        if found is None:
            found = _parsed(_text(result))
        return found["result"] if isinstance(found, dict) and set(found) == {"result"} else found

    # -- calls ---------------------------------------------------------------------------------------

    async def call(self, rule: Rule, params: Mapping[str, Any]) -> dict[str, Any]:
        """A client's call of a gated tool; returns the result that it is told. Raises ``MissingRequestKey``."""
        meta = params.get("_meta")
        live = Live(dict(meta) if isinstance(meta, dict) else {})
        reference = self._reference(rule.tool, live.meta)
        arguments = params.get("arguments") or {}
        refused = await self._refused(rule, params, arguments)
        if refused is not None:
            return _not_accepted(rule.tool, refused)
        token = _live.set(live)
        try:
            effect = self.effects[rule.tool]
            outcome = await effect.ainvoke((), {"request": reference, "arguments": arguments}, wait=self.config.wait_s)
        except BadArguments as error:
            return _not_accepted(rule.tool, str(error))
        except MissingRequestKey as error:
            return _not_accepted(rule.tool, str(error))
        except Exception as error:
            log.error("%s: a call ended without an outcome: %s", rule.tool, describe(error))
            return _unknown(rule, describe(error))
        finally:
            _live.reset(token)
        try:
            return _told(outcome, live.result)
        except Exception as error:  # the server's answer is not what an answer may be; its effect is known all the same
            log.warning("%s: the server's answer cannot be shown: %s", rule.tool, describe(error))
            return _told(outcome, None)

    def _reference(self, tool: str, meta: dict[str, Any]) -> str:
        """The request reference, from the client's ``_meta`` (the server does not get to see it) or the environment."""
        found = meta.pop(self.config.request_meta, None) if self.config.request_meta else None
        if found is None and self.config.request_env:
            found = os.environ.get(self.config.request_env)
        if isinstance(found, str) and found.strip():
            return found
        places = [f"_meta[{self.config.request_meta!r}]"] if self.config.request_meta else []
        places += [f"the environment variable {self.config.request_env}"] if self.config.request_env else []
        raise MissingRequestKey(
            f"{tool}: no request reference. The application supplies it in {' or '.join(places)}, never the model. "
            "Nothing was written or sent."
        )

    async def _refused(self, rule: Rule, params: Mapping[str, Any], arguments: Any) -> str | None:
        """Why a call is not accepted, if it is not."""
        others = sorted(set(params) - {"name", "arguments", "_meta"})
        if others:
            return f"a gated tool takes no {', '.join(others)}"
        if not isinstance(arguments, dict):
            return "the arguments are no object"
        if (wrong := await self._wrong(rule)) is not None:
            return wrong
        assert self.schemas is not None
        schema = shown_schema(rule, self.schemas[rule.tool])
        if unknown := untaken(schema, arguments):
            return f"there is no argument {', '.join(unknown)}"
        return invalid(schema, arguments)

    async def _wrong(self, rule: Rule) -> str | None:
        """``misfit`` of a tool, after asking the server where that has to be. Raises as ``learn`` does."""
        if self.schemas is None:
            await self.learn()
        return misfit(rule, self.schemas or {})

    # -- the server's tools --------------------------------------------------------------------------

    async def learn(self) -> None:
        """Ask the server for its tools' schemas, and say where the configuration does not fit them.

        Raises:
            ServerError: it answered with an error, or with what is no list of tools.
            ServerGone: it ended before it answered.
        """
        assert self.server is not None
        found: dict[str, dict[str, Any]] = {}
        params: dict[str, Any] = {}
        for _ in range(1000):
            if self.envelope:
                params["_meta"] = self.envelope
            page = await self.server.request("tools/list", params)
            found |= schemas_of(page)
            if not page.get("nextCursor"):
                break
            params = {"cursor": page["nextCursor"]}
        self.schemas = found
        for rule in self.config.rules.values():
            if (wrong := await self._wrong(rule)) is not None:
                log.error("no call of %s is made: %s", rule.tool, wrong)

    def shown(self, result: Any) -> Any:
        """The server's list of tools as the client sees it: gated ones without the key, and without an output schema,
        since what is told of an effect is not always the tool's own answer."""
        try:
            found = schemas_of(result) if isinstance(result, dict) else {}
        except ServerError:  # no list of tools; no gated one is called by it
            return result
        for tool in result["tools"] if found else ():
            rule = self.config.rules.get(tool["name"])
            if rule is not None:
                tool.pop("outputSchema", None)
                tool["inputSchema"] = shown_schema(rule, found[rule.tool])
        return result


def _key(rule: Rule, request: str, arguments: Mapping[str, Any]) -> str:
    return fill(rule.key, {**arguments, REQUEST: request}, (REQUEST,))


def _amount(rule: Rule, arguments: Mapping[str, Any]) -> int:
    """The amount of a call that moves one. Raises ``BadArguments``."""
    found = arguments.get(rule.amount or "")
    if type(found) is not int or found < 0:
        raise BadArguments(f"{rule.amount} is the amount: a whole number that is not negative")
    return found


def _params(tool: str, arguments: dict[str, Any], meta: dict[str, Any]) -> dict[str, Any]:
    params: dict[str, Any] = {"name": tool, "arguments": arguments}
    if meta:
        params["_meta"] = meta
    return params


def _told(outcome: Outcome, result: dict[str, Any] | None) -> dict[str, Any]:
    """The result of a call. An outcome is never an error: a model would try again."""
    existing = outcome.existing
    if outcome.reason is Reason.CONFLICTING_PAYLOAD and existing is not None and existing.committed:
        outcome = replace(outcome, reason=Reason.ALREADY_DONE)
    shown = {name: value for name, value in outcome.to_json().items() if name != "result"}
    if outcome.committed and result is not None:
        meta = result.get("_meta")
        return {**result, "_meta": {**(meta if isinstance(meta, dict) else {}), OUTCOME: shown}}
    texts = [outcome.message]
    standing = outcome if outcome.committed else existing
    if standing is not None and standing.committed:
        texts.append(_answer(standing.result))
    return _result(texts, {OUTCOME: shown})


def _kept(result: Mapping[str, Any]) -> dict[str, Any]:
    """A tool's answer, as evidence: its structured content, else its text, else whatever it is."""
    found = result.get("structuredContent") or _parsed(_text(result)) or result.get("content")
    return {"answer": found or "it answered, and said nothing"}


def _answer(evidence: Any) -> str:
    """What is kept of the tool's answer, or what a lookup found, as text."""
    if isinstance(evidence, dict) and set(evidence) == {"answer"}:
        evidence = evidence["answer"]
    return evidence if isinstance(evidence, str) else json.dumps(evidence, ensure_ascii=False)


def _result(texts: list[str], meta: dict[str, Any], is_error: bool = False) -> dict[str, Any]:
    content = [{"type": "text", "text": text} for text in texts]
    return {"content": content, "isError": is_error, "resultType": "complete", "_meta": meta}


def _not_accepted(tool: str, why: str) -> dict[str, Any]:
    return _result([f"Not done: {tool} does not accept this call ({why}). Nothing was recorded or sent."], {}, True)


def _unknown(rule: Rule, why: str) -> dict[str, Any]:
    words = (
        f"Unknown: what became of {rule.effect} could not be recorded ({why}). It may have happened. Do not repeat it "
        "and do not do it another way. A person has to look at the journal; once it works again, the same request "
        "finds out."
    )
    return _result([words], {OUTCOME: {"outcome": "UNKNOWN", "status": "UNKNOWN", "effect": rule.effect}})


def _text(result: Mapping[str, Any]) -> str:
    blocks = result.get("content")
    found = [one for one in blocks if isinstance(one, dict)] if isinstance(blocks, list) else []
    return "\n".join(str(one["text"]) for one in found if one.get("type") == "text" and "text" in one)


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text.strip()


def _facts(found: Any, reading: Reading) -> dict[str, Any]:
    facts = found if isinstance(found, dict) else {"answer": found}
    if not reading.fields:
        return facts
    return {name: facts.get(name) for name in reading.fields}
