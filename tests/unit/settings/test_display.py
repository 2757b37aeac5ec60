"""Settings as ``doctor`` shows them, and the table of all properties."""

from pydantic import BaseModel, SecretStr

from quotahost.settings.broker import Settings, properties_table
from quotahost.settings.declaration import PREFIX, declared
from quotahost.settings.reader import describe
from tests.unit.settings.properties import NAMES, read


def test_settings_are_described_in_full_with_where_they_come_from() -> None:
    rows = {row.property: row for row in describe(read(static_produce="10M", validity="PT5M"))}

    produce = rows[f"{PREFIX}static.produce"]
    assert (produce.value, produce.where) == ("10,000,000 bytes/s (10M)", "broker properties")
    assert rows[f"{PREFIX}validity"].value == "300 s"
    idle = rows[f"{PREFIX}clients.idle"]
    assert (idle.value, idle.where) == ("3,600 s (1h)", "default")
    assert rows[f"{PREFIX}newcomers.request"].value == "200 %"
    assert rows[f"{PREFIX}static.fetch"].value == "unlimited"
    assert "factor.source" in rows[f"{PREFIX}fallback.action"].where
    assert list(rows) == [PREFIX + name for name in NAMES]


def test_secrets_are_described_as_stars_by_name_or_by_the_plugin_s_own_model() -> None:
    class Mine(BaseModel):
        open_sesame: SecretStr | None = None
        hour: str = ""

    properties = {
        "supplier": "mine",
        "kafka.bootstrap.servers": "SECRET-1",
        "plugin.mine.api-token": "SECRET-2",
        "plugin.mine.open-sesame": "SECRET-3",
        "plugin.mine.hour": "22",
    }
    settings = Settings.from_properties({PREFIX + name: text for name, text in properties.items()})
    values = {row.property.removeprefix(PREFIX): row.value for row in describe(settings, {"mine": Mine})}

    assert values["kafka.bootstrap.servers"] == "***"
    assert values["plugin.mine.api-token"] == "***"
    assert values["plugin.mine.open-sesame"] == "***"
    assert values["plugin.mine.hour"] == "22"
    assert "SECRET" not in repr(settings) + str(settings)


def test_the_table_has_every_property_once() -> None:
    lines = properties_table().splitlines()
    families = ["kafka.*", "static.kafka.admin.*", "plugin.NAME.*"]
    assert [line.split("`")[1] for line in lines[2:]] == [*NAMES, *families]
    assert "| `newcomers.produce` | `100M` | bytes/s | yes |" in properties_table()
    assert "| `clients.max` | `50000` | count | no |" in properties_table()
    assert all(declaration.doc for declaration in declared(Settings))


def test_every_default_of_the_table_means_what_leaving_the_property_out_means() -> None:
    written = {p.name: p.default for p in declared(Settings) if p.default and " " not in p.default}
    written.pop("metrics.port")  # "off" is a word for none
    assert Settings.from_properties({PREFIX + name: text for name, text in written.items()}) == (
        Settings.from_properties({})
    )
