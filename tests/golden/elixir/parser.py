"""A Pratt parser for the part of Elixir that golden cases are written in."""

from __future__ import annotations

from golden.elixir.cursor import Cursor
from golden.elixir.errors import ElixirError
from golden.elixir.lexer import Token, tokenize
from golden.elixir.syntax import (
    Access,
    Alias,
    Apply,
    Attribute,
    Block,
    Call,
    Capture,
    CaptureArgument,
    Clause,
    Clauses,
    Function,
    List,
    Literal,
    Map,
    Node,
    Remote,
    Sigil,
    Text,
    Tuple,
    Variable,
)  # fmt: skip
from golden.elixir.values import Atom

#: Binary operators with their precedence, and whether they are right-associative.
BINARY: dict[str, tuple[int, bool]] = {
    "**": (230, False), "*": (220, False), "/": (220, False), "+": (210, False), "-": (210, False),
    "++": (200, True), "--": (200, True), "..": (200, True), "<>": (200, True), "//": (190, True),
    "in": (170, False), "|>": (160, False), "<<<": (160, False), ">>>": (160, False),
    "<": (150, False), ">": (150, False), "<=": (150, False), ">=": (150, False),
    "==": (140, False), "!=": (140, False), "=~": (140, False), "===": (140, False),
    "!==": (140, False), "&&": (130, False), "&&&": (130, False), "and": (130, False),
    "||": (120, False), "|||": (120, False), "or": (120, False), "=": (100, True),
    "|": (70, True), "::": (60, True), "when": (50, True), "<-": (40, False), "\\\\": (40, False),
}  # fmt: skip
UNARY = {"-": 300, "+": 300, "!": 300, "not": 300, "^": 300}
CAPTURE = 90

#: Kinds of tokens and operators that begin an expression, for calls without parentheses.
STARTS = {
    "int", "float", "string", "charlist", "atom", "key", "alias", "name", "capture", "sigil",
}  # fmt: skip
STARTING_OPERATORS = {"{", "[", "%{", "%", "@", "&", "not", "!", "^", "..", "<<"}
#: Keywords that end a block.
STOPS = {"end", "else", "do", "after", "rescue", "catch"}
#: Keywords that begin another section of a do-block.
SECTIONS = ("else", "after", "rescue", "catch")
#: Operators that are functions of two arguments if ``/2`` follows.
NAMED = {"+", "-", "*", "/", "**", "++", "--", "<>", "==", "!=", "<", ">", "<=", ">=", "&&&", "|||"}
CONSTANTS = {"true": True, "false": False, "nil": None}


def parse(source: str) -> Block:
    """Parse source into a block of expressions."""
    return Parser(tokenize(source)).whole()


class Parser(Cursor):
    """Parses tokens into a syntax tree."""

    #: True if ``do`` belongs to an outer call, as in ``if f x do``.
    no_do = False

    # --- blocks ---

    def whole(self) -> Block:
        """Parse all tokens."""
        body = self._block()
        if not self.at("end_of_file"):
            raise ElixirError(
                f"line {self.token.line}: unexpected {self.token.value}", "SyntaxError"
            )
        return body if isinstance(body, Block) else Block((body,))

    def _at_stop(self) -> bool:
        closing = self.at("op", ")", "]", "}")
        return closing or self.at("end_of_file") or self.at("name", *STOPS)

    def _block(self) -> Node:
        """Parse expressions up to a word that ends a block."""
        body: list[Node] = []
        self.skip_lines()
        while not self._at_stop():
            body.append(self._expression())
            if not self.accept("eol") and not self._at_stop():
                raise ElixirError(
                    f"line {self.token.line}: unexpected {self.token.value}", "SyntaxError"
                )
            self.skip_lines()
        return body[0] if len(body) == 1 else Block(tuple(body))

    def _clauses_or_block(self) -> Node:
        """Parse the block between ``do`` and ``end``."""
        start = self.position
        self.skip_lines()
        if not self._has_arrow():
            self.position = start
            return self._block()
        clauses: list[Clause] = []
        while not self._at_stop():
            clauses.append(self._clause())
            self.skip_lines()
        return Clauses(tuple(clauses))

    def _has_arrow(self) -> bool:
        """Return whether an arrow comes before this expression ends."""
        depth = 0
        for token in self.tokens[self.position :]:
            opening = token.kind == "op" and token.value in ("(", "[", "{", "%{")
            if opening or (token.kind == "name" and token.value in ("fn", "do")):
                depth += 1
            elif (token.kind == "op" and token.value in (")", "]", "}")) or (
                token.kind == "name" and token.value == "end"
            ):
                depth -= 1
            elif depth == 0 and (
                token.kind == "eol" or (token.kind == "name" and token.value in SECTIONS)
            ):
                return False
            elif depth == 0 and token.kind == "op" and token.value == "->":
                return True
            if depth < 0 or token.kind == "end_of_file":
                return False
        return False

    def _clause(self) -> Clause:
        patterns: list[Node] = []
        while not self.at("op", "->"):
            patterns.append(self._expression())
            self.accept("op", ",")
        self.expect("->")
        guard = None
        if patterns and isinstance(patterns[-1], Call) and patterns[-1].name == "when":
            patterns[-1], guard = patterns[-1].args
        body: list[Node] = []
        self.skip_lines()
        while not self._at_stop() and not self._has_arrow():
            body.append(self._expression())
            self.skip_lines()
        return Clause(tuple(patterns), guard, body[0] if len(body) == 1 else Block(tuple(body)))

    def _do_block(self) -> List:
        """Parse ``do … else … end`` as a keyword list."""
        entries: list[Node] = []
        word = "do"
        while word != "end":
            entries.append(Tuple((Literal(Atom(word)), self._clauses_or_block())))
            word = self.next().value
            if word not in ("end", *SECTIONS):
                raise ElixirError(f"unexpected {word} in a do-block", "SyntaxError")
        return List(tuple(entries))

    # --- expressions ---

    def _expression(self, minimum: int = 0) -> Node:
        left = self._prefix()
        while self.token.kind == "op":
            negated = self.token.value == "not" and self.tokens[self.position + 1].value == "in"
            operator = "in" if negated else self.token.value
            if operator not in BINARY:
                break
            power, right_first = BINARY[operator]
            if power < minimum:
                break
            if negated:
                self.next()
            line = self.next().line
            right = self._expression(power if right_first else power + 1)
            left = Call(operator, (left, right), line)
            left = Call("not", (left,), line) if negated else left
        return left

    def _prefix(self) -> Node:
        token = self.token
        if token.kind == "op":
            if token.value in UNARY:
                self.next()
                operand = self._expression(UNARY[token.value])
                if token.value == "-" and _is_number(operand):
                    return Literal(-operand.value)
                return Call(token.value, (operand,), token.line)
            if token.value == "&":
                self.next()
                return Capture(self._named_operator() or self._expression(CAPTURE))
            if token.value == "@":
                return self._attribute()
            if token.value == "..":
                self.next()
                return Call("..", (), token.line)
        return self._postfix(self._primary())

    def _named_operator(self) -> Node | None:
        """``+/2`` after an ampersand."""
        operator, slash, arity = self.tokens[self.position : self.position + 3]
        named = operator.kind == "op" and operator.value in NAMED
        if not named or slash.value != "/" or arity.kind != "int":
            return None
        self.position += 3
        return Call("/", (Variable(operator.value, operator.line), Literal(arity.value)))

    def _attribute(self) -> Node:
        self.next()
        name = self.next().value
        if self.at("eol") or not self._starts_argument():
            return self._postfix(Attribute(name))
        return Call("@", (Literal(name), self._expression()))

    def _primary(self) -> Node:
        token = self.next()
        match token.kind:
            case "int" | "float":
                return Literal(token.value)
            case "string":
                return _text(token.value)
            case "charlist":
                return List(tuple(Literal(ord(letter)) for letter in token.value[1:-1]))
            case "atom":
                return Literal(CONSTANTS.get(token.value, Atom(token.value)))
            case "alias":
                return Alias(token.value)
            case "capture":
                return CaptureArgument(token.value)
            case "sigil":
                return Sigil(*token.value)
            case "name":
                return self._word(token)
            case "op" if token.value == "(":
                body = self._clauses_or_block()
                self.expect(")")
                return body
            case "op" if token.value == "{":
                return Tuple(_joined(*self._items("}")))
            case "op" if token.value == "[":
                return self._list()
            case "op" if token.value == "<<":
                return Call("<<>>", _joined(*self._items(">>")), token.line)
            case "op" if token.value == "%{":
                return self._map(None)
            case "op" if token.value == "%":
                struct = self._dotted()
                self.expect("{")
                return self._map(struct)
        raise ElixirError(f"line {token.line}: unexpected {token.value}", "SyntaxError")

    def _word(self, token: Token) -> Node:
        """Parse a variable, a constant, a function, or a call."""
        if token.value in CONSTANTS:
            return Literal(CONSTANTS[token.value])
        if token.value == "fn":
            body = self._clauses_or_block()
            self.expect("end")
            assert isinstance(body, Clauses)
            return Function(body.clauses)
        if self.at("op", "(") and not self.token.space_before:
            return self._finish_call(token, self._arguments())
        if self._starts_argument():
            return self._finish_call(token, self._bare_arguments())
        if self.at("name", "do") and not self.no_do:
            return self._finish_call(token, ())
        return Variable(token.value, token.line)

    def _finish_call(self, token: Token, args: tuple[Node, ...]) -> Node:
        if not self.no_do and self.accept("name", "do"):
            args = (*args, self._do_block())
        return Call(token.value, args, token.line)

    def _starts_argument(self) -> bool:
        """Return whether the first argument of a call without parentheses follows."""
        token = self.token
        if not token.space_before or (token.kind == "name" and token.value in STOPS):
            return False
        if token.kind in STARTS:
            return True
        if token.kind != "op":
            return False
        if token.value in ("-", "+"):
            return not token.space_after
        return token.value in STARTING_OPERATORS

    def _bare_arguments(self) -> tuple[Node, ...]:
        outer, self.no_do = self.no_do, True
        args = _joined(*self._sequence(None))
        self.no_do = outer
        return args

    def _arguments(self) -> tuple[Node, ...]:
        self.expect("(")
        return _joined(*self._items(")"))

    def _items(self, closing: str) -> tuple[list[Node], list[Node]]:
        """Parse expressions and pairs up to a closing bracket."""
        outer, self.no_do = self.no_do, False
        self.skip_lines()
        found = self._sequence(closing)
        self.skip_lines()
        self.expect(closing)
        self.no_do = outer
        return found

    def _sequence(self, closing: str | None) -> tuple[list[Node], list[Node]]:
        """Parse expressions with commas between them, and the final pairs with keys."""
        items: list[Node] = []
        pairs: list[Node] = []
        while closing is None or not self.at("op", closing):
            if self.token.kind == "key":
                key = Literal(Atom(self.next().value))
                pairs.append(Tuple((key, self._expression())))
            else:
                items.append(self._expression())
            if not self.accept("op", ","):
                break
            self.skip_lines()
        return items, pairs

    def _list(self) -> Node:
        items, pairs = self._items("]")
        if items and isinstance(items[-1], Call) and items[-1].name == "|":
            head, tail = items[-1].args
            return List((*items[:-1], head), tail)
        return List((*items, *pairs))

    def _map(self, struct: str | None) -> Node:
        start = self.position
        base: Node | None = None
        if not self.at("key") and not self.at("op", "}"):
            base = self._expression(71)
            if not self.accept("op", "|"):
                base, self.position = None, start
        pairs: list[tuple[Node, Node]] = []
        while not self.accept("op", "}"):
            if self.at("key"):
                key: Node = Literal(Atom(self.next().value))
            else:
                key = self._expression(81)
                self.expect("=>")
            pairs.append((key, self._expression()))
            self.accept("op", ",")
            self.skip_lines()
        return Map(tuple(pairs), base, struct)

    def _dotted(self) -> str:
        name = str(self.next().value)
        while self.accept("op", "."):
            name += f".{self.next().value}"
        return name

    def _postfix(self, node: Node) -> Node:
        """Parse the fields, calls and accesses that follow."""
        while self.token.kind == "op":
            if self.at("op", "["):
                if self.token.space_before:
                    break
                self.next()
                node = Access(node, _joined(*self._items("]"))[0])
            elif self.accept("op", "."):
                node = self._after_dot(node)
            else:
                break
        return node

    def _after_dot(self, node: Node) -> Node:
        if self.at("op", "("):
            return Apply(node, self._arguments())
        token = self.next()
        if token.kind == "alias":
            assert isinstance(node, Alias)
            return Alias(f"{node.name}.{token.value}")
        name = str(token.value)
        if token.kind == "string":
            name = "".join(map(str, token.value))
        if self.at("op", "(") and not self.token.space_before:
            return self._finish_remote(node, name, self._arguments())
        if isinstance(node, Alias) and self._starts_argument():
            return self._finish_remote(node, name, self._bare_arguments())
        return Remote(node, name, (), False)

    def _finish_remote(self, node: Node, name: str, args: tuple[Node, ...]) -> Node:
        if not self.no_do and self.accept("name", "do"):
            args = (*args, self._do_block())
        return Remote(node, name, args, True)


def _joined(items: list[Node], pairs: list[Node]) -> tuple[Node, ...]:
    """Arguments of a call: pairs are one keyword list, the last argument."""
    return (*items, List(tuple(pairs))) if pairs else tuple(items)


def _is_number(node: Node) -> bool:
    return isinstance(node, Literal) and type(node.value) in (int, float)


def _text(parts: list[object]) -> Node:
    if len(parts) == 1:
        return Literal(parts[0])
    nodes = [Literal(p) if isinstance(p, str) else Parser(list(p)).whole() for p in parts]  # type: ignore[call-overload]
    return Text(tuple(nodes))
