"""Test that digests are sent once by mail and webhook, over TLS, and that faults are reported without secrets."""

import json
import re
import shutil
import smtplib
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from paper_assets.delivery import channels
from paper_assets.delivery.channels import message_of
from paper_assets.delivery.options import load_delivery
from paper_assets.digests.mail import is_public
from paper_assets.errors import InvalidInput, InvalidProfile, PaperAssetsError
from paper_assets.interfaces.cli import exchange
from paper_assets.pipeline.deliveries import deliver, undelivered
from paper_assets.pipeline.digest_pages import gather
from paper_assets.pipeline.digests import STEP, outgoing_digest
from paper_assets.pipeline.step import Partition, stale
from paper_assets.pipeline.workspace import open_workspace
from paper_assets.processes import this_process
from paper_assets.profile import load_profile
from paper_assets.retrying import limited
from paper_assets.settings import load_settings
from paper_assets.stores.deliveries import claim, deliveries, note
from tests.defs.test_digests import MONDAY, NOW, TUESDAY, Graph
from tests.delivery.mail_server import PASSWORD, USER, Mailbox, dripping_mail_server, mail_server
from tests.desk import Desk
from tests.loopback import Answer, Request, serving

TO = "reader@example.org"
HOOK = "PAPER_ASSETS_WEBHOOK_LAB"


class Out(Graph):
    """A graph whose profile `ponds` has its digests sent."""

    def __init__(self, folder: Path, instance: dg.DagsterInstance, box: Mailbox, hook: str) -> None:
        super().__init__(folder, instance)
        environ = {
            "PAPER_ASSETS_FIRST_DAY": "2026-01-01",
            "PAPER_ASSETS_SMTP_HOST": "localhost",
            "PAPER_ASSETS_SMTP_PORT": str(box.port),
            "PAPER_ASSETS_SMTP_USER": USER,
            "PAPER_ASSETS_MAIL_FROM": "desk@example.org",
            "PAPER_ASSETS_SMTP_PASSWORD": PASSWORD,
            HOOK: f"{hook}/services/T0/secret-path",
        }
        self.settings = load_settings(environ, folder)
        changed = open_workspace(self.settings, environ, clock=lambda: NOW)
        self.workspace = replace(self.workspace, settings=self.settings, access=changed.access)
        self.asks({"mail": {"to": [TO]}, "webhook": {"address_in": HOOK}})

    def asks(self, options: dict[str, Any]) -> None:
        file = self.settings.profiles_dir / "ponds" / "delivery.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(options), encoding="utf-8")

    def environ(self, **changed: str) -> None:
        access = self.workspace.access
        self.workspace = replace(self.workspace, access=replace(access, environ={**access.environ, **changed}))

    def sent(self) -> dict[str, str]:
        return {each.channel: each.state for each in deliveries(self.warehouse, ["ponds"], since=MONDAY)}


@pytest.fixture
def posts() -> list[Request]:
    return []


@pytest.fixture
def box(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Mailbox]:
    with mail_server(tmp_path) as server:
        monkeypatch.setenv("SSL_CERT_FILE", str(server.authority))
        yield server


@pytest.fixture
def answers() -> list[Answer]:
    """What the webhook answers, in order; then 200."""
    return []


@pytest.fixture(scope="module")
def ranked_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with a ranked day, to be copied."""
    folder = tmp_path_factory.mktemp("ranked")
    with dg.DagsterInstance.ephemeral() as instance:
        graph = Graph(folder, instance)
        graph.papers(MONDAY, "Loud frogs", "Quiet frogs & <!channel> @here [x](y)", "Slow tortoises")
        graph.ranked(MONDAY)
    return folder


@pytest.fixture
def out(tmp_path: Path, ranked_home: Path, box: Mailbox, posts: list[Request], answers: list[Answer]) -> Iterator[Out]:
    def answer(request: Request) -> Answer:
        posts.append(request)
        return answers.pop(0) if answers else Answer(body=b"ok")

    shutil.copytree(ranked_home, tmp_path, dirs_exist_ok=True)
    with serving(answer) as hook, dg.DagsterInstance.ephemeral() as instance:
        instance.add_dynamic_partitions("profile", ["ponds"])
        yield Out(tmp_path, instance, box, hook)


def test_a_digest_goes_out_once_by_mail_and_webhook_however_often_it_is_made(
    out: Out, box: Mailbox, posts: list[Request]
) -> None:
    for _ in range(3):
        outcome = out.materialize(MONDAY)
        assert outcome.success and all(check.passed for check in outcome.get_asset_check_evaluations())
    assert (len(box.mails), len(posts)) == (1, 1)
    mail = box.mails[0]
    assert mail["Subject"] == "ponds, Monday, 2 March 2026: two papers"
    assert (mail["From"], mail["To"], box.recipients) == ("desk@example.org", TO, [[TO]])
    html, text = mail.get_body(("html",)), mail.get_body(("plain",))
    assert html is not None and "Loud frogs" in html.get_content() and "<!channel>" not in html.get_content()
    assert text is not None and "Loud frogs" in text.get_content()
    for part in (html, text):  # first why, then the arithmetic
        assert re.search(r"Why: [^.]+\.", " ".join(part.get_content().split()))
    assert out.sent() == {"mail": "sent", "webhook": "sent"}


def test_the_webhooks_object_has_the_documented_shape_and_mentions_no_user(out: Out, posts: list[Request]) -> None:
    out.materialize(MONDAY)
    [post] = posts
    assert (post.method, post.path) == ("POST", "/services/T0/secret-path")
    assert post.headers["content-type"].startswith("application/json")
    payload = json.loads(post.body)
    assert set(payload) == {"text", "title", "message", "profile", "day", "papers", "desk"}
    assert payload["text"] == f"{payload['title']}\n{payload['message']}"
    assert (payload["profile"], payload["day"], len(payload["papers"])) == ("ponds", "2026-03-02", 2)
    assert payload["papers"][0]["url"].startswith("https://arxiv.org/abs/2603.")
    assert not set("<>@[]") & set(payload["text"]) and "Quiet frogs" in payload["text"]


def test_without_a_file_or_with_an_old_day_nothing_is_sent(out: Out, box: Mailbox, posts: list[Request]) -> None:
    out.workspace = replace(out.workspace, clock=lambda: NOW + timedelta(days=10))
    assert out.materialize(MONDAY).success
    out.workspace = replace(out.workspace, clock=lambda: NOW)
    (out.settings.profiles_dir / "ponds" / "delivery.json").unlink()
    outcome = out.materialize(MONDAY)
    assert all(check.passed for check in outcome.get_asset_check_evaluations())
    assert (box.mails, posts) == ([], [])


def test_a_backfill_sends_its_newest_day_only(out: Out, box: Mailbox) -> None:
    out.papers(TUESDAY, "Frogs at night")
    out.ranked(TUESDAY)
    assert out.materialize(MONDAY, TUESDAY).success
    assert [mail["Subject"].partition(":")[0] for mail in box.mails] == ["ponds, Tuesday, 3 March 2026"]


def test_what_was_refused_is_a_failed_check_and_goes_out_with_the_next_run(
    out: Out, box: Mailbox, posts: list[Request], answers: list[Answer]
) -> None:
    box.answer = "452 the disk is full"
    answers.append(Answer(status=404))
    outcome = out.materialize(MONDAY)
    assert outcome.success, "the page is there"
    [check] = [each for each in outcome.get_asset_check_evaluations() if not each.passed]
    assert check.check_name == "digests_were_sent"
    failed = str(check.metadata["failed"].value)
    assert "452 the disk is full" in failed and f"{HOOK}: it answered HTTP 404" in failed
    assert stale(STEP.tracked, out.workspace, [Partition(MONDAY, "ponds")]) == [Partition(MONDAY, "ponds")]
    box.answer = "250 taken"
    outcome = out.materialize(MONDAY)
    assert all(each.passed for each in outcome.get_asset_check_evaluations())
    assert (len(box.mails), len(posts)) == (1, 2)
    assert stale(STEP.tracked, out.workspace, [Partition(MONDAY, "ponds")]) == []


@pytest.mark.parametrize("broken", ["mail", "webhook"])
def test_what_may_have_arrived_is_shown_and_never_sent_twice(
    out: Out, box: Mailbox, posts: list[Request], answers: list[Answer], broken: str
) -> None:
    if broken == "mail":
        box.breaks = True
    else:
        answers.append(Answer(body=b"x" * 1000, status=502))
    for _ in range(2):
        outcome = out.materialize(MONDAY)
        box.breaks = False
        [check] = [each for each in outcome.get_asset_check_evaluations() if not each.passed]
        assert f"paper-assets deliver ponds --day {MONDAY} --again" in str(check.metadata["unknown"].value)
    assert (len(box.mails), len(posts)) == (1, 1)
    found = outgoing_digest(out.warehouse, "ponds", MONDAY, settings=out.settings)
    assert [each.state for each in deliver(out.workspace, found, again=True)] == ["sent", "sent"]
    assert (len(box.mails), len(posts)) == ((2, 1) if broken == "mail" else (1, 2)), "the other channel had arrived"
    deliver(out.workspace, found, again=True)
    assert len(box.mails) + len(posts) == 5, "all arrived, so all are sent again"
    assert undelivered(out.workspace, ["ponds"]) == []


def transmitting(out: Out) -> None:
    """As a process leaves it that is killed after the first byte of a mail."""
    assert claim(out.warehouse, "ponds", MONDAY, "mail", now=NOW)
    note(out.warehouse, "ponds", MONDAY, "mail", "sending", None, now=NOW)


def test_a_process_killed_before_it_transmits_has_sent_nothing_and_the_next_command_does(
    out: Out, box: Mailbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = outgoing_digest(out.warehouse, "ponds", MONDAY, settings=out.settings)
    assert claim(out.warehouse, "ponds", MONDAY, "mail", now=NOW)
    assert [each.state for each in deliver(out.workspace, found)] == ["claimed", "sent"], "this process is at work"
    assert undelivered(out.workspace, ["ponds"]) == []
    later = NOW + timedelta(hours=2)  # no claim lasts so long, whoever made it
    assert claim(out.warehouse, "ponds", MONDAY, "mail", now=later)
    with monkeypatch.context() as patch:
        gone = replace(this_process(), started="1")
        patch.setattr("paper_assets.stores.deliveries.this_process", lambda: gone)
        assert claim(out.warehouse, "ponds", MONDAY, "mail", now=NOW, again=True)
    [lost] = undelivered(out.workspace, ["ponds"])
    assert not lost.unknown and "cut off before anything was sent" in str(lost)
    assert [each.state for each in deliver(out.workspace, found)] == ["sent", "sent"]
    assert len(box.mails) == 1


@pytest.mark.parametrize("channel", ["mail", "webhook"])
def test_a_delivery_is_of_unknown_outcome_from_before_its_first_byte_on(
    out: Out, box: Mailbox, answers: list[Answer], monkeypatch: pytest.MonkeyPatch, channel: str
) -> None:
    """The states are looked at by a channel that is about to transmit."""
    states: list[str] = []

    def looking(*given: Any, **named: Any) -> Any:
        states.append(out.sent()[channel])
        raise ConnectionResetError

    monkeypatch.setattr("smtplib.SMTP.data" if channel == "mail" else "requests.post", looking)
    deliver(out.workspace, outgoing_digest(out.warehouse, "ponds", MONDAY, settings=out.settings))
    assert states == ["sending"]


def test_a_process_killed_while_it_sends_leaves_a_delivery_of_unknown_outcome(out: Out, box: Mailbox) -> None:
    transmitting(out)
    out.materialize(MONDAY)
    assert box.mails == []
    assert out.sent() == {"mail": "sending", "webhook": "sent"}
    [lost] = undelivered(out.workspace, ["ponds"])
    assert lost.unknown and "it is unknown whether it arrived (cut off)" in str(lost)


def test_only_one_of_two_processes_sends(out: Out) -> None:
    assert claim(out.warehouse, "ponds", MONDAY, "mail", now=NOW)
    assert not claim(out.warehouse, "ponds", MONDAY, "mail", now=NOW)
    note(out.warehouse, "ponds", MONDAY, "mail", "failed", "no", now=NOW)
    assert claim(out.warehouse, "ponds", MONDAY, "mail", now=NOW)


def test_mail_is_not_sent_where_the_connection_is_not_safe(
    out: Out, box: Mailbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SSL_CERT_FILE")
    found = outgoing_digest(out.warehouse, "ponds", MONDAY, settings=out.settings)
    [mail, _] = deliver(out.workspace, found)
    assert (mail.state, mail.reason) == (
        "failed",
        "localhost: its certificate could not be verified; for a private server set SSL_CERT_FILE",
    )
    with mail_server(tmp_path, tls=False) as plain:
        out.workspace = replace(out.workspace, settings=out.settings.model_copy(update={"smtp_port": plain.port}))
        [mail, _] = deliver(out.workspace, found)
        assert mail.reason == "localhost: it does not offer TLS or a way to log in; the mail was not sent"
        assert plain.mails == box.mails == []


def test_each_recipient_gets_a_separate_mail_and_can_unsubscribe(out: Out, box: Mailbox) -> None:
    out.asks({"mail": {"to": [TO, "other@example.org"]}})
    deliver(out.workspace, outgoing_digest(out.warehouse, "ponds", MONDAY, settings=out.settings))
    assert [mail["To"] for mail in box.mails] == [TO, "other@example.org"]
    assert box.recipients == [[TO], ["other@example.org"]]
    assert len({mail["Message-ID"] for mail in box.mails}) == 2
    assert box.mails[0]["List-Unsubscribe"].strip().startswith("<mailto:desk@example.org?subject=Unsubscribe")


def test_a_mail_whose_connection_breaks_after_the_first_recipient_is_not_sent_again_automatically(
    out: Out, box: Mailbox
) -> None:
    out.asks({"mail": {"to": [TO, "other@example.org"]}})
    box.breaks = True
    [mail] = deliver(out.workspace, outgoing_digest(out.warehouse, "ponds", MONDAY, settings=out.settings))
    assert (mail.state, box.recipients) == ("sending", [[TO]])


def test_a_mail_is_text_and_inline_styles_and_no_link_leads_to_this_machine(out: Out) -> None:
    found = outgoing_digest(out.warehouse, "ponds", MONDAY, settings=out.settings)
    assert "Quiet frogs & <!channel> @here [x](y)" in found.text and "\\" not in found.text
    assert "<style" not in found.html and "class=" not in found.html
    addresses = re.findall(r'href="([^"]*)"', found.html) + re.findall(r"[^\s<>]+://[^\s<>]+", found.text)
    assert addresses and all(each.startswith("https://arxiv.org/") for each in addresses)
    public = out.settings.model_copy(update={"desk_url": "https://desk.example.org"})
    linked = outgoing_digest(out.warehouse, "ponds", MONDAY, settings=public)
    assert all(f"https://desk.example.org/p/ponds/{MONDAY}" in part for part in (linked.html, linked.text))
    for entry in found.digest.entries:  # a sentence for each paper comes before the first paper
        assert found.text.index(str(entry.title)) < found.text.index("https://arxiv.org/pdf")


@pytest.mark.parametrize(
    ("url", "public"),
    [
        ("https://desk.example.org", True),
        ("http://127.0.0.1:8787", False),
        ("http://[::1]:8787", False),
        ("http://10.1.2.3", False),
        ("http://desk:8787", False),
        ("http://desk.local", False),
        (None, False),
    ],
)
def test_only_an_address_that_others_reach_is_public(url: str | None, public: bool) -> None:
    assert is_public(url) is public


def test_a_recipient_that_is_refused_does_not_keep_the_others_from_theirs(out: Out, box: Mailbox) -> None:
    out.asks({"mail": {"to": [TO, "gone@example.org"]}})
    box.refused = {"gone@example.org"}
    [mail] = deliver(out.workspace, outgoing_digest(out.warehouse, "ponds", MONDAY, settings=out.settings))
    assert (mail.state, mail.reason) == ("sent", "1 of 2 recipients refused by localhost")
    assert box.recipients == [[TO]]


def test_no_secret_is_in_a_message(out: Out, answers: list[Answer], caplog: pytest.LogCaptureFixture) -> None:
    answers += [Answer(status=302, headers={"Location": "http://127.0.0.1:9/elsewhere"})]
    out.environ(PAPER_ASSETS_SMTP_PASSWORD="wrong-horse-battery")
    outcome = out.materialize(MONDAY)
    output = str([each.metadata for each in outcome.get_asset_check_evaluations()]) + caplog.text
    assert "it rejected the user name or the password (535)" in output
    assert "HTTP 302; redirects are not followed" in output
    out.environ(**{HOOK: "http://hooks.example.org/secret-path"})
    output += str(
        [
            each.reason
            for each in deliver(out.workspace, outgoing_digest(out.warehouse, "ponds", MONDAY, settings=out.settings))
        ]
    )
    assert f"{HOOK} must be an https address" in output
    assert not any(secret in output for secret in ("secret-path", "horse-battery"))
    assert PASSWORD not in repr(out.workspace)


def test_a_webhook_that_cannot_be_reached_is_asked_again_by_the_next_run(out: Out) -> None:
    out.environ(**{HOOK: "http://127.0.0.1:9/secret-path"})
    out.asks({"webhook": {"address_in": HOOK}})
    [post] = deliver(out.workspace, outgoing_digest(out.warehouse, "ponds", MONDAY, settings=out.settings))
    assert (post.state, post.reason) == ("failed", f"{HOOK}: it cannot be reached")


def test_a_webhook_that_does_not_answer_may_have_it(
    out: Out, answers: list[Answer], monkeypatch: pytest.MonkeyPatch
) -> None:
    out.asks({"webhook": {"address_in": HOOK}})
    found = outgoing_digest(out.warehouse, "ponds", MONDAY, settings=out.settings)
    for slow, name, seconds, reason in (
        (Answer(hang=True), "_WEBHOOK_TIMEOUT", 0.2, f"{HOOK}: it did not answer within 0.2 s"),
        (Answer(drip_head=0.05), "_WEBHOOK_LIMIT", 0.4, f"{HOOK}: it gave no whole answer within 0.4 s"),
    ):
        answers.append(slow)
        with monkeypatch.context() as patch:  # of two short limits, either may end the wait on a busy machine
            patch.setattr(channels, name, seconds)
            [post] = deliver(out.workspace, found, again=True)
        assert (post.state, post.reason) == ("sending", reason)


@pytest.mark.parametrize(
    ("answered", "late", "state", "reason"),
    [
        (b"", "_connect", "failed", "127.0.0.1: it gave no whole answer in time"),
        (
            b"220 mail\r\n250 mail\r\n250 fine\r\n250 fine\r\n354 go on\r\n",
            "data",
            "sending",
            "gave no whole answer within 0.4 s",
        ),
    ],
    ids=["before the mail", "after the mail"],
)
def test_a_mail_server_that_replies_byte_by_byte_is_given_up_in_time(
    out: Out, monkeypatch: pytest.MonkeyPatch, answered: bytes, late: str, state: str, reason: str
) -> None:
    def only_late(seconds: float, call: partial[Any]) -> Any:
        """Limit the step that is late; on a busy machine the steps before it may take as long."""
        return limited(seconds if call.func.__name__ == late else 60, call)

    monkeypatch.setattr(channels, "_MAIL_LIMIT", 0.4)
    monkeypatch.setattr(channels, "limited", only_late)
    monkeypatch.setattr(smtplib.SMTP, "starttls", lambda *_, **__: None)  # the replies below are sent in the clear
    out.asks({"mail": {"to": [TO]}})
    with dripping_mail_server(answered) as port:
        changed = {"smtp_port": port, "smtp_host": "127.0.0.1", "smtp_user": ""}
        out.workspace = replace(out.workspace, settings=out.settings.model_copy(update=changed))
        [mail] = deliver(out.workspace, outgoing_digest(out.warehouse, "ponds", MONDAY, settings=out.settings))
    assert mail.state == state and mail.reason is not None and reason in mail.reason


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        ({"mail": {"to": ["a@b\nBcc: c@d"]}}, "mail.to.0: must be an address"),
        ({"mail": {"to": []}}, "mail.to"),
        ({"post": {}}, "post: unknown key"),
        ({"webhook": {"address_in": "https://hooks.example.org/secret-path"}}, "must be a variable like"),
        ({"webhook": {"address_in": "OPENAI_API_KEY"}}, "must be a variable like"),
    ],
    ids=["line break", "nobody", "unknown", "address itself", "other secret"],
)
def test_a_faulty_file_is_named_and_its_secrets_are_not(out: Out, record: dict[str, Any], reason: str) -> None:
    out.asks(record)
    with pytest.raises(InvalidProfile) as refusal:
        load_delivery(out.settings.profiles_dir, "ponds")
    assert "delivery.json" in str(refusal.value) and reason in str(refusal.value)
    assert "secret-path" not in str(refusal.value)
    outcome = out.materialize(MONDAY)
    assert outcome.success
    [check] = [each for each in outcome.get_asset_check_evaluations() if not each.passed]
    assert "delivery.json" in str(check.metadata["failed"].value)


@pytest.mark.parametrize(
    ("webhook", "reason"),
    [
        ({"url": "https://hooks.example.org/secret-path"}, "webhook.address_in: field required"),
        ("https://hooks.example.org/secret-path", "webhook: must be an object"),
    ],
    ids=["under another key", "without a key"],
)
def test_an_address_written_into_the_file_is_not_repeated(tmp_path: Path, webhook: object, reason: str) -> None:
    (tmp_path / "ponds").mkdir()
    (tmp_path / "ponds" / "delivery.json").write_text(json.dumps({"webhook": webhook}), encoding="utf-8")
    with pytest.raises(InvalidProfile) as refusal:
        load_delivery(tmp_path, "ponds")
    assert reason in str(refusal.value) and "secret-path" not in str(refusal.value)


def test_a_long_list_is_cut_for_a_message(out: Out) -> None:
    digest = gather(out.warehouse, "ponds", MONDAY, settings=out.settings)
    long = replace(digest.entries[0], title="x" * 500)
    message = message_of(replace(digest, entries=(long,) * 40))
    assert len(message.payload["text"]) < 3_200 and message.payload["text"].endswith("…")


def test_delivery_options_change_no_ranking(out: Out) -> None:
    folder = out.settings.profiles_dir / "ponds"
    (folder / "profile.json").write_text('{"interests": {"primary": ["frogs"]}}', encoding="utf-8")
    before = load_profile(folder).content_hash
    (folder / "delivery.json").unlink()
    assert load_profile(folder).content_hash == before


def test_the_digest_of_a_profile_that_does_not_exist_is_refused_by_that_name(tmp_path: Path) -> None:
    message = Desk(tmp_path).refused("deliver", "typo")
    assert "there is no profile 'typo' in " in message and "run " not in message.replace(str(tmp_path), "")


def test_the_command_sends_a_delivery_of_unknown_outcome_again(
    out: Out, box: Mailbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, value in out.workspace.access.environ.items():
        monkeypatch.setenv(name, value)
    transmitting(out)
    with pytest.raises(PaperAssetsError, match=r"mail unknown: cut off while .*deliver ponds --day .* --again"):
        exchange.deliver("ponds", day=MONDAY, as_json=True)
    exchange.deliver("ponds", day=MONDAY, again=True)
    assert len(box.mails) == 1
    assert [line.split()[1:4:2] for line in capsys.readouterr().out.splitlines() if "mail" in line][-1][1] == "sent"
    out.asks({})
    with pytest.raises(InvalidInput, match="nothing to send"):
        exchange.deliver("ponds")
