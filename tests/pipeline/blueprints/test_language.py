"""A domain file says what is wrong in it, with file, line and field; and means what it says."""

from __future__ import annotations

import pytest

from pipeline.blueprints.language.reading import read_domain
from pipeline.blueprints.make import blueprint, domain_names, shipped_domain
from pipeline.errors import UserError

GOOD = """\
domain: tea_room
title: "{place} tea room"
about: A tea room with tables and guests.
user: waiter
subject: table_order

words:
  flower: [Rose, Lily, Aster, Iris, Tulip, Daisy]

entities:
  waiter:
    rows: 2
    name: person
  seat|place:
    rows: 4..5
    name: name {flower} table
    chairs: int 2..6
    status: state free*4 > taken > free
  table_order:
    rows: 6
    number: code TO-###
    seat:
    waiter:
    amount: money 5..40 step 0.5
    paid: bool 40%

actions:
  seat_guests:
    says: Seat guests at a free [seat]
    ask: Seat {guests} guests at the {seat.name}.
    takes: {seat: , guests: int 1..6}
    rules:
      - guests <= seat.chairs else The {seat.name} has only {seat.chairs} chairs
    does:
      - seat.status -> taken
  pay:
    says: Note that a [table_order] was paid
    ask: "[Table_order] {table_order.number} is paid."
    takes: {table_order: }
    rules:
      - table_order.waiter == me else [Table_order] {table_order.number} belongs to {table_order.waiter.name}
      - not table_order.paid else [Table_order] {table_order.number} was paid before
    does: table_order.paid = True

tasks:
  largest_free:
    say: Seat {guests} guests at the free [seat] with the most chairs and name it.
    given: {guests: int 1..2}
    find:
      seat: last seat by seat.chairs if seat.status == 'free'
    goal: seat_guests(seat, guests)
    answer: seat.name
"""


def line_of(text: str, part: str) -> int:
    return next(number for number, line in enumerate(text.splitlines(), 1) if part in line)


def test_a_good_file_is_read():
    domain = read_domain(GOOD, "tea.yaml")
    assert list(domain.entities) == ["waiter", "seat", "table_order"]
    assert domain.entities["seat"].words == ("seat", "place")
    assert domain.tasks["largest_free"].find[0].how == "last"


def test_a_step_of_a_lifecycle_implies_a_rule_that_says_from_where_it_is_possible():
    rules = read_domain(GOOD, "tea.yaml").actions["seat_guests"].rules
    assert [rule.test.text for rule in rules][-1] == "seat.status in ('free',)"


def test_a_rule_that_mentions_the_user_is_about_permission():
    own = [rule.own for rule in read_domain(GOOD, "tea.yaml").actions["pay"].rules]
    assert own == [True, False]


@pytest.mark.parametrize(
    ("old", "new", "field", "says"),
    [
        ("chairs: int 2..6", "chairs: int 6..2", "entities.seat|place.chairs", "is empty"),
        ("chairs: int 2..6", "chairs: number 2..6", "entities.seat|place.chairs", "there is no form number"),
        ("    seat:\n", "    seet:\n", "entities.table_order.seet", "there is no form seet"),
        ("paid: bool 40%", "order: bool 40%", "entities.table_order.order", "the name order is taken"),
        ("paid: bool 40%", "Paid: bool 40%", "entities.table_order.Paid", "is not a name"),
        ("{flower} table", "{tree} table", "entities.seat|place.name", "there is no list tree"),
        ("seat.status -> taken", "seat.status -> gone", "actions.seat_guests.does[0]", "nothing may become 'gone'"),
        ("guests <= seat.chairs", "guests <= seat.legs", "actions.seat_guests.rules[0]", "seat has no field legs"),
        (
            "guests <= seat.chairs",
            "guests <= seat.name",
            "actions.seat_guests.rules[0]",
            "a int is compared with a text",
        ),
        ("else The {seat.name} has", "then The {seat.name} has", "actions.seat_guests.rules[0]", "a rule is"),
        ("says: Seat guests", "sais: Seat guests", "actions.seat_guests.sais", "there is no sais here"),
        ("seat.status == 'free'", "seat.status == 'fre'", "tasks.largest_free.find.seat", "'fre' is not one of"),
        ("last seat by seat.chairs", "last seat", "tasks.largest_free.find.seat", "last needs `by EXPR`"),
        ("seat_guests(seat, guests)", "seat_guests(seat)", "tasks.largest_free.goal", "seat_guests needs guests"),
        ("seat_guests(seat, guests)", "seats(seat)", "tasks.largest_free.goal", "there is no action seats"),
        ("seat_guests(seat, guests)", "seat_guests(guests, seat)", "tasks.largest_free.goal", "is compared with"),
        ("answer: seat.name", "answer: seat.nam", "tasks.largest_free.answer", "seat has no field nam"),
        ("and name it", "and name {it}", "tasks.largest_free.say", "nothing is called it here"),
        ("[Table_order] {table", "[Tableorder] {table", "actions.pay.ask", "is not the noun of an entity"),
        ("table_order.paid = True", "table_order.paid = 3", "actions.pay.does", "is compared with"),
        ("user: waiter", "user: cook", "user", "there is no entity cook"),
        ("    rows: 2\n", "    rows: two\n", "entities.waiter.rows", "is not a number such as"),
        ("  pay:\n", "  seat_guests:\n", "actions.seat_guests", "is given twice"),
    ],
)
def test_what_is_wrong_is_said_with_its_line_and_field(old: str, new: str, field: str, says: str):
    assert GOOD.count(old) >= 1
    text = GOOD.replace(old, new, 1)
    with pytest.raises(UserError) as caught:
        read_domain(text, "tea.yaml")
    place, _, message = str(caught.value).partition(f" {field}: ")
    changed = next(n for n, (a, b) in enumerate(zip(text.splitlines(), GOOD.splitlines(), strict=True), 1) if a != b)
    assert place == f"tea.yaml:{changed}:"
    assert says in message


@pytest.mark.parametrize("text", ["", "just text", "- a\n- b", "a: [1, 2", "a: b: c", "\x00", "domain: x\n"])
def test_what_is_no_domain_file_is_refused_with_a_sentence(text: str):
    with pytest.raises(UserError, match=r"^tea\.yaml:\d+: "):
        read_domain(text, "tea.yaml")


@pytest.mark.parametrize(
    "expression",
    [
        "__import__('os')",
        "seat.__class__",
        "(lambda: 1)()",
        "seat.name.upper()",
        "[x for x in seat for y in seat]",
        "1 if 1 else 2",
    ],
)
def test_expressions_can_say_nothing_but_what_the_language_has(expression: str):
    text = GOOD.replace("answer: seat.name", f'answer: "{expression}"')
    with pytest.raises(UserError, match=r"tasks\.largest_free\.answer"):
        read_domain(text, "tea.yaml")


def test_there_are_at_least_24_domains_and_all_are_read():
    assert len(domain_names()) >= 24
    for name in domain_names():
        assert shipped_domain(name).name == name


@pytest.mark.parametrize("name", domain_names())
def test_every_domain_has_its_own_rules_and_several_kinds_of_tasks(name: str):
    domain = shipped_domain(name)
    own = [action for action in domain.actions.values() if not action.shared]
    forms = [form for form in domain.tasks.values() if not form.shared]
    assert sum(len(action.rules) for action in own) >= 8
    assert any(not form.steps and form.answer for form in forms), "no task that only asks"
    assert any(len(form.steps) > 1 or any(step.each for step in form.steps) for form in forms), (
        "no task of several actions"
    )
    assert any(item.how in ("first", "last") for form in forms for item in form.find), "no task that chooses"
    assert any(form.condition for form in forms), "no task whose right action depends on something"


def test_what_cannot_be_computed_for_some_rows_is_said_with_its_line():
    text = GOOD.replace("    waiter:\n", "    waiter: waiter? 50%\n", 1).replace(
        "not table_order.paid else", "table_order.waiter.name != 'Nobody' else"
    )
    line = line_of(text, "Nobody")
    with pytest.raises(UserError, match=rf"tea\.yaml:{line}: actions\.pay\.rules\[1\]: .* guard what may be absent"):
        blueprint(read_domain(text, "tea.yaml"), 0, 0)
