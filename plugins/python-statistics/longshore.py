"""What a Longshore plugin in Python needs of its host, in plain words: tools, progress, questions, logging.

Copy this file beside your plugin. It needs nothing but the standard library, and nothing in it is private to the examples; what
it does not cover is in `task`, `log` and `notify`, which are the host's own functions (see wit/).
"""

import dataclasses
import inspect
import json
import random
import sys
import traceback
import types as python_types
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from componentize_py_types import Err
from wit_world import exports
from wit_world.exports import tools as contract
from wit_world.imports import log, notify, task, types  # noqa: F401  `notify` is for the plugin

INVALID_PARAMS = -32602
INTERNAL = -32603
MISSING_CAPABILITY = -32021


class RpcError(Exception):
    """Raise it if the *request* is wrong: the client gets a JSON-RPC error. Any other exception says that the *work* failed:
    the model reads its text and may try again.

    `code` is -32602 (invalid params), -32603 (internal), or one outside -32768..-32000.
    """

    def __init__(self, code: int, message: str, data: Any = None):
        super().__init__(message)
        self.code, self.message, self.data = code, message, data


class Interrupted(Exception):
    """The caller wants the work to end. Raised where the run stops early; let it pass."""


# -- Tools ------------------------------------------------------------------------------------------------------------------


_tools: dict[str, tuple[Any, contract.Tool]] = {}


def tool(
    *,
    name: str | None = None,
    title: str | None = None,
    task: Literal["forbidden", "optional", "required"] = "optional",
    asks_first: bool = False,
    read_only: bool | None = None,
    destructive: bool | None = None,
    idempotent: bool | None = None,
    open_world: bool | None = None,
):
    """Makes a tool of a function.

    The function's name and docstring are what clients are told of it; its parameters become the schema of the arguments, and
    the host refuses what does not fit before the function is called. `Annotated[float, "..."]` describes a parameter,
    `Annotated[float, {"minimum": 0}]` narrows it. `task` says whether a call may become a task; the questions of a tool with
    `asks_first` come before the task, which is made by `task.begin()`. The others are hints for clients.

    A function that returns a string gives text; any other value is structured content with a copy as text. If the return type
    is a dataclass, its schema is told too.
    """
    hints = contract.ToolAnnotations(None, read_only, destructive, idempotent, open_world)
    told = any(hint is not None for hint in (read_only, destructive, idempotent, open_world))

    def register(function):
        entry = contract.Tool(
            name or function.__name__,
            title,
            inspect.getdoc(function),
            json.dumps(_schema_of_parameters(function)),
            _schema_of_result(function),
            hints if told else None,
            [],
            None,
            contract.TaskSupport[task.upper()],
            asks_first,
        )
        _tools[entry.name] = (function, entry)
        return function

    return register


class Tools(exports.Tools):
    """The export of the component. A plugin has it under this name: `from longshore import Tools`."""

    def list(self) -> list[contract.Tool]:
        return [entry for _, entry in _tools.values()]

    def call(self, name: str, arguments: str) -> None:
        # A component is built with the state of its modules, this generator's too: every call would draw the same numbers.
        random.seed()
        if name not in _tools:
            raise _wire(RpcError(INVALID_PARAMS, f"there is no tool {name}"))
        function, _ = _tools[name]
        try:
            result = _result(function(**_arguments(function, json.loads(arguments))))
        except Exception as error:
            result = _failure(error)
        _complete(result)


# -- Results ----------------------------------------------------------------------------------------------------------------


class Result:
    """A result built by hand, from `text(...)`, `image(...)` and the other blocks of `types`."""

    def __init__(self, content=(), structured: Any = None, is_error: bool = False, meta: dict | None = None):
        self.raw = types.CallResult(list(content), _json(structured), is_error, _json(meta))


def text(value: str):
    """Content of a `Result`: text."""
    return types.ContentBlock_Text(types.TextContent(value, None, None))


def image(data: bytes, mime_type: str):
    """Content of a `Result`: a picture, as in "image/png"."""
    return types.ContentBlock_Image(types.MediaContent(data, mime_type, None, None))


def _result(value: Any) -> types.CallResult:
    if isinstance(value, Result):
        return value.raw
    if value is None:
        return Result().raw
    if isinstance(value, str):
        return Result([text(value)]).raw
    return Result([text(_json(value))], value).raw


def _failure(error: Exception) -> types.CallResult:
    """What the caller gets for an exception: a result that says so, or a JSON-RPC error (raised)."""
    if isinstance(error, Interrupted):
        raise _wire(RpcError(INTERNAL, str(error)))
    if isinstance(error, RpcError):
        raise _wire(error)
    # Where it happened is for the operator; a model has no use for it.
    traceback.print_exception(error, file=sys.stderr)
    return Result([text(str(error) or type(error).__name__)], is_error=True).raw


def _complete(result: types.CallResult) -> None:
    try:
        task.complete(result)
    except Err as refused:
        raise _wire(RpcError(INTERNAL, f"the result was not taken: {_why(refused)}"))


def _wire(error: RpcError) -> Err:
    return Err(types.RpcError(error.code, error.message, _json(error.data)))


def _why(refused: Err) -> str:
    return getattr(refused.value, "value", type(refused.value).__name__)


def _json(value: Any) -> str | None:
    return None if value is None else json.dumps(value, default=_plain, ensure_ascii=False)


def _plain(value: Any):
    if dataclasses.is_dataclass(value):
        return dataclasses.asdict(value)
    raise TypeError(f"{type(value).__name__} cannot be sent as JSON")


# -- The call that is served ------------------------------------------------------------------------------------------------


def progress(done: float, total: float | None = None, message: str | None = None) -> None:
    """Says how far the work has got. `done` must grow; `message` is one line for a person."""
    task.report_progress(float(done), None if total is None else float(total), message)


def stop_if_cancelled() -> None:
    """Raises `Interrupted` if the caller wants the work to end. Call it in long loops."""
    if task.cancelled():
        raise Interrupted("the caller wants the work to end")


def ask[Form](message: str, form: type[Form], *, name: str = "form") -> Form | None:
    """Asks the user to fill in a form, and waits for the answer, however long it takes.

    `form` is a dataclass whose fields are strings, numbers, booleans, `Literal`s, or one of these with a default. `name` is for
    the question; clients see it. The answer is `None` if the user declined the form or closed it.
    """
    request = task.FormRequest(message, json.dumps(_schema(form)))
    (answer,) = request_input([task.InputRequest(name, task.InputKind_Form(request))])
    if isinstance(answer, task.InputAnswer_Refused):
        raise Exception(f"the client answered with error {answer.value.code}: {answer.value.message}")
    if answer.value.action is not task.ElicitAction.ACCEPT:
        return None
    return _build(form, json.loads(answer.value.content or "{}"))


@dataclasses.dataclass
class _Confirm:
    yes: Annotated[bool, {"title": "Yes"}] = False


def confirm(message: str, *, name: str = "confirm") -> bool:
    """Asks for a yes; everything else is `False`."""
    form = ask(message, _Confirm, name=name)
    return form is not None and form.yes


def request_input(requests: list[task.InputRequest]) -> list[task.InputAnswer]:
    """Asks several things at once, of every kind that there is: requests and answers as in wit/task.wit."""
    try:
        return task.request_input(requests)
    except Err as refused:
        if isinstance(refused.value, task.InputError_Interrupted):
            raise Interrupted("the caller wants the work to end")
        if isinstance(refused.value, task.InputError_Unsupported):
            raise RpcError(MISSING_CAPABILITY, f"the client cannot answer this question: {_why(refused)}")
        raise RpcError(INTERNAL, f"the plugin's question is not valid: {_why(refused)}")


def _say(level: types.LogLevel):
    def say(message: Any, **data: Any) -> None:
        log.log(level, None, _json({"message": message, **data} if data else message) or "null")

    return say


# They go to the operator's log, and to the client if it asked for that level. `print` goes to the operator alone.
debug = _say(types.LogLevel.DEBUG)
info = _say(types.LogLevel.INFO)
notice = _say(types.LogLevel.NOTICE)
warning = _say(types.LogLevel.WARNING)
error = _say(types.LogLevel.ERROR)


# -- Schemas from types -----------------------------------------------------------------------------------------------------


_PLAIN = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}


def _schema(of: Any) -> dict:
    """The JSON Schema of a type."""
    if get_origin(of) is Annotated:
        base, *notes = get_args(of)
        schema = _schema(base)
        for note in notes:
            schema |= {"description": note} if isinstance(note, str) else note
        return schema
    if of in _PLAIN:
        return {"type": _PLAIN[of]}
    if dataclasses.is_dataclass(of):
        hints = get_type_hints(of, include_extras=True)
        fields = {field.name: (hints[field.name], field.default) for field in dataclasses.fields(of)}
        return _object_schema(fields, dataclasses.MISSING)
    arguments = get_args(of)
    if get_origin(of) is list:
        return {"type": "array", "items": _schema(arguments[0])}
    if get_origin(of) is Literal:
        return {"type": "string", "enum": list(arguments)}
    if get_origin(of) in (Union, python_types.UnionType):
        # A field that may be missing is left out of `required`; forms have no null.
        kinds = [_schema(kind) for kind in arguments if kind is not type(None)]
        return kinds[0] if len(kinds) == 1 else {"anyOf": kinds}
    if of is dict or get_origin(of) is dict:
        return {"type": "object"}
    if of is Any:
        return {}
    raise TypeError(f"{of} has no JSON Schema here; use str, int, float, bool, list, dict, Literal or a dataclass")


def _object_schema(fields: dict[str, tuple[Any, Any]], missing: Any) -> dict:
    """The schema of an object, from the type and default of each field."""
    properties = {}
    for name, (kind, default) in fields.items():
        properties[name] = _schema(kind)
        if default is not missing and default is not None:
            properties[name]["default"] = default
    required = [name for name, (_, default) in fields.items() if default is missing]
    return {"type": "object", "properties": properties, "required": required}


def _schema_of_parameters(function) -> dict:
    hints = get_type_hints(function, include_extras=True)
    parameters = inspect.signature(function).parameters.values()
    fields = {parameter.name: (hints[parameter.name], parameter.default) for parameter in parameters}
    return _object_schema(fields, inspect.Parameter.empty)


def _schema_of_result(function) -> str | None:
    returned = get_type_hints(function).get("return")
    return json.dumps(_schema(returned)) if dataclasses.is_dataclass(returned) else None


def _arguments(function, arguments: dict) -> dict:
    hints = get_type_hints(function)
    return {name: _build(hints[name], value) for name, value in arguments.items() if name in hints}


def _build(kind: Any, value: Any) -> Any:
    """A value of this type, from JSON that fits its schema."""
    if dataclasses.is_dataclass(kind):
        hints = get_type_hints(kind)
        return kind(**{name: _build(hints[name], part) for name, part in value.items() if name in hints})
    if get_origin(kind) is list:
        (part,) = get_args(kind)
        return [_build(part, each) for each in value]
    return value
