"""The demonstration's liar, on a broker with access rules and on one without."""

import pytest

from support.waiting import until
from whenabouts_sim.demo.liar import Liar
from whenabouts_sim.judge.judgement import Lies
from whenabouts_sim.stack.broker import HOST, RunningBroker, running_broker
from whenabouts_sim.stack.enrolment import Enrolment
from whenabouts_sim.stack.stack import Stack

NAME, VICTIMS = ("s", "liar"), [("s", "a"), ("s", "b")]
KINDS = 4  # of lies to each victim


def lies_of(port, context):
    """What comes of a liar that has told each of its lies."""
    liar = Liar((HOST, port), context, NAME, VICTIMS)
    liar.start()
    until(lambda: liar._attempts > KINDS * len(VICTIMS), "all lies", 20)
    return liar.stop()


def test_the_liar_fails_where_everybody_has_a_certificate(tmp_path):
    """Each of its messages is answered by a denial, and it hears nothing."""
    with Stack(tmp_path) as stack:
        assert stack.enrol({"/".join(name): ["group"] for name in (NAME, *VICTIMS)})
        assert isinstance(stack.enrolment, Enrolment)
        stack.broker.start()
        lies = lies_of(stack.broker.port, stack.enrolment.context("/".join(NAME)))
    assert lies.attempts > KINDS * len(VICTIMS)
    assert lies == Lies(lies.attempts, denied=lies.attempts, let_through=0, overheard=0)
    assert lies.in_vain


def test_without_mosquitto_everybody_is_let_in(tmp_path):
    """The embedded broker has no access rules: a run goes on without certificates, and without a liar."""
    with Stack(tmp_path) as stack:
        stack.broker = RunningBroker(tmp_path / "embedded", kind="embedded")
        assert not stack.enrol({"s/a": []})
        assert stack.enrolment is None


def test_the_liar_succeeds_where_everybody_is_let_in(tmp_path):
    """So its count of denials means something."""
    with running_broker(tmp_path, kind="mosquitto") as broker:
        lies = lies_of(broker.port, None)
    assert lies.let_through == lies.attempts > 0
    assert lies.overheard > 0
    assert not lies.in_vain


@pytest.mark.parametrize("lies", [Lies(0, 0, 0, 0), Lies(2, 1, 0, 0), Lies(2, 1, 1, 0), Lies(1, 1, 0, 1)])
def test_a_liar_that_was_not_denied_everything_fails_the_run(lies):
    """Nor may it have made no attempt."""
    assert not lies.in_vain
    assert Lies(1, 1, 0, 0).in_vain
