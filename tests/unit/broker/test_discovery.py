"""Tests how plugins are found by name, imported, checked and built, and that every error names a remedy."""

import shutil
import sys
import traceback
from base64 import b64encode
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest
from pydantic import BaseModel, Field, Json

from quotahost.api import Context, Role
from quotahost.broker.discovery import PluginError, load, survey
from quotahost.settings.declaration import PREFIX, SettingsError
from quotahost.settings.sections import read_section
from quotahost.testing import FakeBroker, FakeHost
from quotahost.units import Duration
from tests.fakes.packages import distribute, distribute_quotahost

GOOD = """
    from pydantic import BaseModel, SecretStr, field_validator
    from quotahost.units import Duration

    class Good:
        class Section(BaseModel):
            every: Duration = "1m"
            open_sesame: SecretStr = SecretStr("")

            @field_validator("open_sesame")
            @classmethod
            def check(cls, value):
                if value.get_secret_value() == "S3CR3T-bad":
                    raise ValueError(f"{value.get_secret_value()} opens nothing")
                return value

        def __init__(self, context): pass
        def quota(self, client, quota_type):
            return None
"""


#: Python, JSON and URLs escape characters of this password, and text is often wrapped at blanks.
PASSWORD = "S3CR3T  'it\"s' \\ 50% é\n"


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder on sys.path whose modules are forgotten after the test."""
    monkeypatch.syspath_prepend(tmp_path)
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if str(tmp_path) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


def supplier(site: Path, name: str, code: str, distribution: str = "acme") -> None:
    module = f"{distribution}_{name}".replace("-", "_")
    distribute(site, distribution, {Role.SUPPLIER.group: {name: f"{module}:plugin"}}, {module: code})


def good(site: Path) -> None:
    distribute(site, "acme", {Role.SUPPLIER.group: {"good": "acme_good:Good"}}, {"acme_good": GOOD})


def test_the_error_of_an_unknown_name_lists_the_nearest_and_all_others(site: Path) -> None:
    good(site)
    distribute_quotahost(site)
    listed = r"^supplier 'goood': no such plugin .* did you mean 'good'\? Installed plugins: .*client-quotas.*static"
    with pytest.raises(PluginError, match=listed):
        load(Role.SUPPLIER, "goood")
    absent = r"factor source 'good': no such plugin is installed; install its .*, whose entry point is of the group "
    with pytest.raises(PluginError, match=rf"^{absent}quotahost\.factor_sources, or remove it from {PREFIX}factor\."):
        load(Role.FACTOR_SOURCE, "good")
    with pytest.raises(PluginError, match=r"factor source 'none': no such plugin .* leave the property empty\."):
        load(Role.FACTOR_SOURCE, "none")


@pytest.mark.parametrize("fails", [True, False], ids=["the plugin fails", "the plugin has another role"])
def test_what_a_plugin_has_opened_ends_if_it_can_not_be_built(fails: bool) -> None:
    ended: list[str] = []

    def entry(context: Context) -> object:
        context.closing.callback(ended.append, "what it has opened")
        if fails:
            raise OSError("no such thing")
        return SimpleNamespace(close=lambda: ended.append("itself"))

    with pytest.raises(PluginError):
        FakeHost(Role.SUPPLIER, entry, name="half")
    assert ended == ["itself"] * (not fails) + ["what it has opened"]


def test_another_package_whose_entry_points_can_not_be_read_is_named(site: Path) -> None:
    good(site)
    distribute(site, "torn", {})
    (site / "torn-1.0.dist-info" / "entry_points.txt").write_bytes(b"[x]\na = \xff")
    words = rf"^supplier 'good': the entry points of the package torn in {site} can't be read .* reinstall the package$"
    with pytest.raises(PluginError, match=words):
        load(Role.SUPPLIER, "good")
    with pytest.raises(PluginError, match="the package torn"):
        survey(print)


def test_a_plugin_without_a_model_has_no_settings_and_a_broken_one_of_others_is_not_imported(site: Path) -> None:
    ran = site / "ran"
    supplier(site, "broken", f"open({str(ran)!r}, 'w').close()\nraise SystemExit", distribution="other")
    supplier(site, "plain", "class plugin:\n    quota = print\n    def __init__(self, context): self.c = context")
    with FakeHost(Role.SUPPLIER, "plain") as host:
        assert host.context.section is None
    with pytest.raises(SettingsError, match=rf"{PREFIX}plugin\.plain\.x.*has no properties; remove it, or give all"):
        FakeHost(Role.SUPPLIER, "plain", {"plugin.plain.x": "1"})
    assert not ran.exists()


class Own(BaseModel):
    off_peak_factor: float = Field(default=2.0, gt=0, description="How much more at night.")
    every: Duration = timedelta(minutes=1)
    base_rate: int = Field(alias="baseRate")
    names: list[str] = []
    read: Json[list[str]] = []


def test_a_plugins_properties_are_set_by_its_fields_names_and_named_in_full_where_one_is_wrong() -> None:
    own = read_section("good", {"base-rate": "5"}, Own)
    assert isinstance(own, Own)
    assert own.base_rate == 5
    wrong = {"off-peek-factor": "3", "off-peak-factor": "-3", "every": "5", "names": '["a"]', "read": "{}"}
    with pytest.raises(SettingsError) as error:
        read_section("good", wrong, Own)
    lines = str(error.value).splitlines()
    start = f" - {PREFIX}plugin.good."
    assert f"{start}off-peek-factor: unknown property; did you mean {PREFIX}plugin.good.off-peak-factor?" in lines
    assert any(line.startswith(f"{start}off-peak-factor=-3: ") and "How much more" in line for line in lines)
    assert any(line.startswith(f"{start}every=5: has no unit; write 5s") for line in lines)
    told = "must be a valid list, which no text is: its plugin must declare it by pydantic's Json"
    assert {f'{start}names=["a"]: {told}', f"{start}read={{}}: must be a valid list"} <= {*lines}
    assert f"{start}base-rate: is required; add a line {PREFIX}plugin.good.base-rate=" in lines
    with pytest.raises(SettingsError, match=r'(?s)plugin\.good\.base-rate=x: .*read="a","b": .*--add-config-file'):
        read_section("good", {"base-rate": "x", "read": '"a","b"'}, Own)  # what --add-config leaves of a list


def test_no_error_of_a_plugin_shows_its_secrets(site: Path) -> None:
    code = """
        import pydantic
        class plugin:
            class Section(pydantic.BaseModel):
                api_token: str = ""
            def __init__(self, context):
                raise RuntimeError(f"cannot log in with {context.section.api_token}")
    """
    good(site)
    supplier(site, "telltale", code, distribution="other")
    client = """
        import base64, json, urllib.parse
        class plugin:
            def __init__(self, context):
                own = context.broker.client_config()
                password = own["sasl.password"]
                try:
                    raise KeyError(base64.b64encode(password.encode()))
                except KeyError:
                    raise RuntimeError(f"{own} {json.dumps(own)} {urllib.parse.urlencode(own)} {password}")
    """
    supplier(site, "client", client, distribution="third")
    cases = [("good", {"plugin.good.open-sesame": "S3CR3T-bad", "plugin.good.every": "x"})]
    cases += [("telltale", {"plugin.telltale.api-token": PASSWORD}), ("client", {})]
    node = FakeBroker(client={"sasl.username": "broker", "sasl.password": PASSWORD + "own"})
    for name, own in cases:
        with pytest.raises((PluginError, SettingsError)) as error:
            FakeHost(Role.SUPPLIER, name, own, broker=node)
        told = "".join(traceback.format_exception(error.value))
        assert "S3CR3T" not in told
        assert b64encode(b"S3CR3T").decode() not in told
        assert name in str(error.value)


INHERITS = "import quotahost.api\nclass plugin(quotahost.api.{}):\n    def __init__(self, context): pass"
IMPORT, BUILD = "acme_it:plugin of acme 1.0 fails to import: ", "cannot be built: "
TASK = """
    from datetime import timedelta
    class plugin:
        period = {}
        def __init__(self, context): pass
        def run(self): pass
"""
SUPPLIER = """
    class plugin:
        def __init__(self, context): pass
        def quota(self, client, quota_type): pass
        {}
"""


@pytest.mark.proves("proposal-035.interfaces")
@pytest.mark.parametrize(
    ("role", "code", "words"),
    [
        (Role.SUPPLIER, "import no_such_module_anywhere", f"{IMPORT}ModuleNotFoundError: No module named 'no_such"),
        (Role.SUPPLIER, "raise RuntimeError('bad\\n\\x1b[1mday')", f"{IMPORT}RuntimeError: bad \\x1b[1mday"),
        (Role.SUPPLIER, "raise RuntimeError('m' * 40_000)", f"{IMPORT}RuntimeError: mmm"),
        (Role.SUPPLIER, "import sys; sys.exit(3)", f"{IMPORT}SystemExit: 3"),
        (Role.SUPPLIER, "class E(Exception):\n    __str__ = lambda self: 1 / 0\nraise E", f"{IMPORT}E: <exception str"),
        (Role.SUPPLIER, "def plugin(: pass", f"{IMPORT}SyntaxError"),
        (Role.SUPPLIER, "other = 1", f"{IMPORT}AttributeError"),
        (Role.SUPPLIER, "class plugin:\n    def __init__(self, context): 1 / 0", f"{BUILD}ZeroDivisionError"),
        (Role.SUPPLIER, "def plugin(context):\n    import sys; sys.exit('bye')", f"{BUILD}SystemExit: bye"),
        (Role.SUPPLIER, "def plugin(): pass", f"{BUILD}TypeError: plugin() takes 0 positional arguments but 1 was"),
        (Role.SUPPLIER, "plugin = 7", f"{IMPORT}TypeError: it can't be called; name a class or function in"),
        (Role.SUPPLIER, "def plugin(context): 1\nplugin.Section = 5", "its attribute Section is 5; make it a sub"),
        # A Protocol's own method answers None for ever: a supplier's clients would have no quota.
        *((role, INHERITS.format(role.protocol.__name__), f"; implement {role.protocol.__name__}") for role in Role),
        (Role.SUPPLIER, SUPPLIER.format("tick = property(lambda self: 1 / 0)"), "role: ZeroDivisionError"),
        *((Role.TASK, TASK.format(period), "; make it a datetime.timedelta above 0")
          for period in ("None", "5", "timedelta()", "timedelta(seconds=-1)")),
    ],
)  # fmt: skip
def test_a_plugin_unfit_for_its_role_is_refused_with_the_reason(site: Path, role: Role, code: str, words: str) -> None:
    distribute(site, "acme", {role.group: {"it": "acme_it:plugin"}}, {"acme_it": code})
    with pytest.raises(PluginError) as error:
        FakeHost(role, "it")
    assert str(error.value).startswith(f"{role} 'it': ")
    assert words in str(error.value)
    assert len(str(error.value)) <= 1000, "the error is short enough for the log and an administrator"


def test_a_survey_lists_every_plugin_and_why_it_fails_to_load(site: Path) -> None:
    good(site)
    shutil.copytree(site / "acme-1.0.dist-info", site / "~cme-1.0.dist-info")  # as a killed pip leaves it
    supplier(site, "exits", "raise SystemExit(1)", distribution="exits")
    distribute(site, "whole", {Role.SUPPLIER.group: {"module": "whole_module"}}, {"whole_module": ""})
    supplier(site, "twice", "plugin = print", distribution="one")
    supplier(site, "twice", "plugin = print", distribution="two")
    distribute(site, "astray", {"quotahost.supplier": {"x": "no:x"}, "quotahost": {"y": "no:y"}})
    distribute(site, "slips", {Role.SUPPLIER.group: {"dashed": "my-quotas:Good", "a.b": "acme_good:Good"}})
    supplier(site, "lacks", "class plugin:\n    async def close(self): pass", distribution="lacks")
    lines: list[str] = []
    found = {(plugin.name, plugin.distribution): plugin for plugin in survey(lines.append)}
    assert "supplier 'exits' is being imported: exits_exits:plugin of exits 1.0" in lines, "it may end the process"
    assert found["lacks", "lacks"].error.endswith(
        "TypeError: plugin has no method quota; implement QuotaSupplier of quotahost.api"
    )
    assert (found["good", "acme"].version, found["good", "acme"].error) == ("1.0", "")
    assert found["exits", "exits"].error == "SystemExit: 1"
    error = found["twice", "one"].error
    assert all(words in error for words in ("offered more than once, by", " one 1.0", " two 1.0", "uninstall"))
    assert found["module", "whole"].error.endswith("name a class or function in the entry point, as MODULE:CLASS")
    told = "quotahost.supplier is not an entry point group of quotahost; did you mean quotahost.suppliers?"
    assert found["x", "astray"].error == told
    assert "; there are quotahost.suppliers, quotahost.factor_sources, " in found["y", "astray"].error
    told = "the entry point my-quotas:Good of slips 1.0 is invalid; write MODULE:CLASS with letters, digits, _ and dots"
    assert found["dashed", "slips"].error == told
    with pytest.raises(PluginError, match=told):
        load(Role.SUPPLIER, "dashed")
    assert found["a.b", "slips"].error == "a property can't name this plugin; use letters, digits, - and _ in its name"
