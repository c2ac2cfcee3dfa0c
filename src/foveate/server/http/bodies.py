"""Request bodies: the arguments of the engine's methods, as JSON.

A route declares its body as `Annotated[dict[str, Any], Arguments(Engine.edit)]`. Names, types and help texts come from the
signature and from the options that it unpacks, so that an option is declared once for the library, the command line and
HTTP. Values are checked strictly, and an error about an unknown field names the nearest known one.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from types import NoneType, SimpleNamespace, UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    NotRequired,
    Required,
    Union,
    Unpack,
    get_args,
    get_origin,
    get_type_hints,
)

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    GetCoreSchemaHandler,
    Tag,
    ValidationError,
    WrapValidator,
)
from pydantic_core import CoreSchema, InitErrorDetails, PydanticCustomError
from typing_extensions import TypedDict, is_typeddict  # pydantic needs these before Python 3.12

from foveate.errors import InputError, near
from foveate.operations.inputs import refuse_unreadable
from foveate.options import Arg
from foveate.types import Filters

MAX_LIST_ITEMS = 10_000
MAX_NESTING = 100
MAX_INT = 2**63 - 1
"""The largest integer that a database stores."""

SCALARS = (NoneType, bool, int, float, str)

VALUES = (Filters,)
"""Classes of arguments that are made from a JSON object with their constructor's parameters."""

OBJECT, LIST, VALUE = SHAPES = ("{}", "[]", "<value>")
"""Tags of the alternatives of a union in a body. pydantic puts them into the place of an error."""

STRICT = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)

Hints = dict[str, Any]


class Arguments:
    """Marks a body that holds the arguments of one or more functions.

    `omit` names parameters that come from elsewhere, such as the path, and `only` selects some. `optional` says that none is
    required. Further fields, which only HTTP has, are passed by name with their types.
    """

    def __init__(
        self,
        *functions: Callable[..., Any],
        name: str,
        omit: Collection[str] = (),
        only: Collection[str] = (),
        optional: bool = False,
        **own: object,
    ) -> None:
        self._functions = functions
        self._name = name
        self._omit, self._only = frozenset(omit), frozenset(only)
        self._optional = optional
        self._own = own

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return handler.generate_schema(Annotated[self.object_type(), BeforeValidator(check_body)])

    def object_type(self) -> Any:
        """Return the type of the JSON object."""
        hints: Hints = {}
        for function in self._functions:
            hints |= parameters(function)
        hints = {name: hint for name, hint in hints.items() if name not in self._omit and name in (self._only or hints)}
        if self._optional:
            hints = {name: NotRequired[_inner(hint)] for name, hint in hints.items()}
        return _object_type(self._name, {**hints, **self._own})


class OneOrMany:
    """Marks a body that is one JSON object, or a list of objects."""

    def __init__(self, one: Arguments, each: Arguments) -> None:
        self._one = one
        self._each = each

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        many: Any = Annotated[list[self._each.object_type()], Field(min_length=1)]  # type: ignore[misc]
        either = _by_shape({OBJECT: self._one.object_type(), LIST: many})
        return handler.generate_schema(Annotated[either, BeforeValidator(check_body)])


def parameters(function: Callable[..., Any]) -> Hints:
    """Return the types of a function's parameters by name, with those of the options that it unpacks."""
    function = inspect.unwrap(function)
    signature = inspect.signature(function)
    written = {name: each.annotation for name, each in signature.parameters.items() if name != "self"}
    hints = get_type_hints(
        SimpleNamespace(__annotations__=written), getattr(function, "__globals__", {}), include_extras=True
    )
    found: Hints = {}
    for name, hint in hints.items():
        parameter = signature.parameters[name]
        if parameter.kind is parameter.VAR_KEYWORD:
            found |= _fields(get_args(hint)[0] if _is(hint, Unpack) else hint)
        elif parameter.default is parameter.empty:
            found[name] = hint
        else:
            found[name] = NotRequired[hint]
    return found


def _fields(declaration: Any) -> Hints:
    """Return the types of a TypedDict's fields; those that can be left out are marked."""
    hints = get_type_hints(declaration, include_extras=True)
    required = declaration.__required_keys__
    return {name: hint if name in required else NotRequired[_inner(hint)] for name, hint in hints.items()}


def _inner(hint: Any) -> Any:
    return get_args(hint)[0] if _is(hint, NotRequired) or _is(hint, Required) else hint


def _is(hint: Any, form: Any) -> bool:
    return get_origin(hint) is form


def _object_type(name: str, hints: Hints) -> Any:
    """Return a pydantic type that reads a JSON object with these fields as a dictionary, and nothing else."""
    fields = {
        field: NotRequired[json_type(_inner(hint))] if _is(hint, NotRequired) else json_type(_inner(hint))
        for field, hint in hints.items()
    }
    make: Any = TypedDict  # type checkers accept literal declarations only
    declared = make(name, fields)
    declared.__pydantic_config__ = STRICT
    return Annotated[declared, WrapValidator(partial(_with_near_names, known=frozenset(fields)))]


def json_type(hint: Any) -> Any:
    """Return the part of a type that JSON can hold, for pydantic. Other alternatives of a union are left out."""
    origin, parts = get_origin(hint), get_args(hint)
    if hint is Any or hint in SCALARS or origin is Literal:
        return hint
    if hint in VALUES:
        return Annotated[_object_type(hint.__name__, parameters(hint.__init__)), AfterValidator(lambda each: hint(**each))]
    if is_typeddict(hint):
        return _object_type(hint.__name__, _fields(hint))
    if origin is Annotated:
        return Annotated[json_type(parts[0]), *map(_metadata, parts[1:])]
    if origin in (Union, UnionType):
        return _union([json_type(part) for part in parts if _is_json(part)])
    if origin in (list, tuple, Sequence):
        return list[json_type(parts[0])]  # type: ignore[misc]
    if origin in (dict, Mapping):
        return dict[str, json_type(parts[1])]  # type: ignore[misc]
    raise TypeError(f"{hint!r} cannot be a field of a JSON body.")


def _union(types: Sequence[Any]) -> Any:
    """Return a union. An error in an object or a list is reported for that alternative alone."""
    by_shape: dict[str, Any] = {}
    for each in types:
        shape = _shape_of_type(each)
        if shape in by_shape and shape != VALUE:
            return Union[tuple(types)]  # noqa: UP007 - the alternatives are computed
        by_shape[shape] = by_shape[shape] | each if shape in by_shape else each
    return by_shape[VALUE] if by_shape.keys() == {VALUE} else _by_shape(by_shape)


def _by_shape(types: Mapping[str, Any]) -> Any:
    tagged = tuple(Annotated[each, Tag(shape)] for shape, each in types.items())
    names = {VALUE: "a text or a number", LIST: "a list", OBJECT: "an object"}
    expected = " or ".join(names[shape] for shape in types)
    by_shape = Discriminator(_shape_of, custom_error_type="shape", custom_error_message=f"Input should be {expected}")
    return Annotated[Union[tagged], by_shape]  # noqa: UP007 - the alternatives are computed


def _shape_of(value: Any) -> str:
    return LIST if isinstance(value, list) else OBJECT if isinstance(value, dict) else VALUE


def _shape_of_type(hint: Any) -> str:
    while get_origin(hint) is Annotated:
        hint = get_args(hint)[0]
    origin = get_origin(hint) or hint
    return LIST if origin is list else OBJECT if origin is dict or is_typeddict(origin) else VALUE


def _is_json(hint: Any) -> bool:
    try:
        json_type(hint)
    except TypeError:
        return False
    return True


def _metadata(each: Any) -> Any:
    """Return a piece of metadata as pydantic knows it."""
    return Field(description=each.help, ge=each.minimum) if isinstance(each, Arg) else each


def _with_near_names(value: Any, read: Callable[[Any], Any], known: frozenset[str]) -> Any:
    """Read an object; an error about an unknown field names the nearest known one."""
    try:
        return read(value)
    except ValidationError as error:
        problems = [
            InitErrorDetails(
                type=PydanticCustomError(each["type"], _message(each, known)), loc=each["loc"], input=each["input"]
            )
            for each in error.errors(include_url=False)
        ]
        raise ValidationError.from_exception_data(error.title, problems) from None


def _message(error: Mapping[str, Any], known: frozenset[str]) -> Any:
    if error["type"] == "extra_forbidden" and len(error["loc"]) == 1:
        return f"No such field.{near(str(error['loc'][0]), known)}"
    return error["msg"]


def refuse_fields(body: Mapping[str, Any], known: Collection[str], subject: str) -> None:
    """Raise an error for fields of a body that do not apply to the action or status that it names."""
    problems = [f"{name} does not apply to {subject}." for name in sorted(body.keys() - set(known))]
    if problems:
        raise InputError(problems)


def check_body(value: Any) -> Any:
    """Refuse values that JSON allows but no store keeps: NUL characters, endless numbers, deep nesting, long lists."""
    _refuse_unsound(value)
    refuse_unreadable(value)
    return value


def _refuse_unsound(value: Any, depth: int = 0) -> None:
    if depth > MAX_NESTING:
        raise InputError(f"The body is nested more than {MAX_NESTING} levels deep.")
    if isinstance(value, float) and not math.isfinite(value):
        raise InputError(f"{value} is not a finite number.")
    if isinstance(value, int) and abs(value) > MAX_INT:
        raise InputError("A number in the body does not fit into 64 bits.")
    if isinstance(value, list | tuple) and len(value) > MAX_LIST_ITEMS:
        raise InputError(f"A list in the body has {len(value):,} items, more than {MAX_LIST_ITEMS:,}. Send it in parts.")
    parts = value.values() if isinstance(value, Mapping) else value if isinstance(value, list | tuple) else ()
    for part in parts:
        _refuse_unsound(part, depth + 1)
