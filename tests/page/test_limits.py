"""No address of the page fails, whatever day, number, id or text it holds."""

from collections.abc import Iterator
from datetime import UTC, datetime
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.testclient import TestClient

from paper_assets.interfaces.page.app import OPERATOR_ROUTES, ROUTES
from paper_assets.stores.backups import Home, back_up_into_folder
from tests.desk import GRAPHS, Desk
from tests.page.in_process import page_client
from tests.stores.invented_warehouse import PROFILE, stored_warehouse

READ = [address for address, show, _ in (*OPERATOR_ROUTES, *ROUTES) if show]
DAYS = [
    "0001-01-01",
    "1899-12-31",
    "1900-01-01",
    "2026-01-05",
    "2199-12-31",
    "9999-12-31",
    "2026-02-30",
    "20260105",
    "-1",
]
NUMBERS = ["0", "-1", "1", "2147483648", "9223372036854775808", "9" * 400, "1e9", "nan", "٣", ""]
IDS = [
    "2601.00001",
    "2601.00001v999999999999999999",
    "doi:10.1/x",
    "title:x",
    "0000.00000",
    "hep-th/9901001",
    "%00",
    "..",
]
ODD = st.sampled_from([*DAYS, *NUMBERS, *IDS, "'", '"<b>', "a" * 2_000]) | st.text(max_size=8)
PARTS = {
    "profile": st.sampled_from([PROFILE, "no-such", "a" * 300, "%00"]),
    "day": st.sampled_from(DAYS),
    "item": ODD,
    "identifier": ODD,
    "paper_id": st.sampled_from(IDS) | ODD,
}
QUERY = st.dictionaries(
    st.sampled_from(
        [
            "page",
            "since",
            "until",
            "q",
            "paper",
            "kept",
            "attempt",
            "against",
            "layout",
            "span",
            "format",
            "show",
            "note",
        ]
    ),
    ODD,
    max_size=3,
)


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Desk:
    desk = Desk(tmp_path_factory.mktemp("limits"))
    desk.profile(PROFILE, GRAPHS)
    with stored_warehouse(desk.warehouse.path).writing() as connection:
        for table in ("ranking_sets", "previous_ranking_sets", "retrieval_sets", "kept_answers"):  # of invented JSON
            connection.execute(f"delete from {table}")
    return desk


@pytest.fixture(scope="module")
def client(desk: Desk) -> Iterator[TestClient]:
    with page_client(desk) as client:
        yield client


@settings(max_examples=60)
@given(data=st.data())
def test_no_address_fails_at_the_limits_of_what_it_holds(client: TestClient, data: st.DataObject) -> None:
    address = data.draw(st.sampled_from(READ))
    for part, values in PARTS.items():
        for form in (f"{{{part}}}", f"{{{part}:path}}"):
            if form in address:
                address = address.replace(form, quote(data.draw(values), safe="%"))
    answer = client.get(address, params=data.draw(QUERY), follow_redirects=False)
    assert answer.status_code < 500, (address, answer.text[-300:])


@pytest.mark.parametrize("address", [address for address in READ if "{day}" in address])
@pytest.mark.parametrize("day", ["0001-01-01", "1900-01-01", "9999-12-31"])
def test_the_first_and_the_last_day_of_the_calendar_are_no_fault(client: TestClient, address: str, day: str) -> None:
    assert client.get(address.format(profile=PROFILE, day=day)).status_code < 500


def test_health_tells_whether_there_is_a_backup(client: TestClient, desk: Desk) -> None:
    assert "There is no backup yet" in client.get("/health").text
    home = Home(warehouse=desk.warehouse, folder=desk.settings.home, profiles_dir=desk.settings.profiles_dir)
    back_up_into_folder(home, now=datetime(2026, 3, 2, tzinfo=UTC))
    assert "The newest backup is of Monday, 2 March 2026" in client.get("/health").text
