"""Settings follow their order of precedence, and no output contains a key."""

from __future__ import annotations

import contextvars
import copy
import dataclasses
import inspect
import json
import logging
import pickle
import threading
import traceback
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from beaconframes import config
from beaconframes.addresses import check_url
from beaconframes.config import configure, current, reset, settings
from beaconframes.errors import ConfigError
from beaconframes.secret import Secret
from beaconframes.setting_table import Settings

KEY = "marker-9f8e7d6c5b4a"


@pytest.fixture(autouse=True)
def bare(monkeypatch):
    """Run each test without settings from outside."""
    for field in dataclasses.fields(Settings):
        monkeypatch.delenv(f"BEACONFRAMES_{field.name.upper()}", raising=False)
    reset()
    yield
    reset()


class TestOrder:
    def test_defaults_are_mainnet_polars_and_online(self):
        """Without settings: mainnet, polars, no key, online."""
        expected = {
            "url": None,
            "api_key": None,
            "chain": "mainnet",
            "rate": None,
            "store": None,
            "store_limit": None,
            "offline": False,
            "frame": "polars",
            "strict": False,
            "progress": None,
            "state": None,
            "max_requests": None,
            "timeout": None,
            "node": None,
            "execution": None,
        }
        assert expected == {name: getattr(current(), name) for name in expected}

    def test_argument_block_connect_environment_default(self, monkeypatch):
        """Each level overrides the lower ones, for its own settings only."""
        assert ("mainnet", None) == (current().chain, current().rate)
        monkeypatch.setenv("BEACONFRAMES_CHAIN", "hoodi")
        monkeypatch.setenv("BEACONFRAMES_RATE", "1")
        assert ("hoodi", 1.0) == (current().chain, current().rate)
        configure(rate=2)
        assert ("hoodi", 2.0) == (current().chain, current().rate)
        with settings(rate=3):
            assert ("hoodi", 3.0) == (current().chain, current().rate)
            assert ("own", 3.0) == (current(chain="own").chain, current().rate)
            assert ("hoodi", 4.0) == (current(rate=4).chain, current(rate=4).rate)
        assert ("hoodi", 2.0) == (current().chain, current().rate)
        reset()
        assert ("hoodi", 1.0) == (current().chain, current().rate)

    def test_none_as_an_argument_means_not_given(self):
        """The setting of the lower level applies."""
        configure(rate=2, frame="pandas")
        assert (2.0, "pandas") == (current(rate=None).rate, current(frame=None).frame)

    def test_none_in_a_block_removes_a_setting(self, monkeypatch):
        """``api_key=None`` removes the key of the environment."""
        monkeypatch.setenv("BEACONFRAMES_API_KEY", KEY)
        with settings(api_key=None) as inside:
            assert inside.api_key is None
        assert Secret(KEY) == current().api_key
        configure(api_key=None)
        assert current().api_key is None

    def test_blocks_nest_and_restore(self):
        """The end of an inner block restores the settings of the outer one."""
        with settings(frame="pandas", rate=5):
            with settings(rate=6) as inside:
                assert ("pandas", 6.0) == (inside.frame, inside.rate)
            assert ("pandas", 5.0) == (current().frame, current().rate)
        assert ("polars", None) == (current().frame, current().rate)

    def test_a_block_restores_after_an_error(self):
        """An exception restores the previous settings as well."""
        with pytest.raises(KeyError), settings(strict=True):
            raise KeyError("x")
        assert current().strict is False

    def test_a_block_with_invalid_settings_changes_nothing(self, monkeypatch):
        """After an error in the environment, the previous settings apply."""
        monkeypatch.setenv("BEACONFRAMES_RATE", "fast")
        with pytest.raises(ConfigError), settings(strict=True):
            pass
        monkeypatch.delenv("BEACONFRAMES_RATE")
        assert current().strict is False

    def test_a_block_applies_to_its_thread(self):
        """Another thread has other settings, unless it runs in a copy of the context."""
        seen = []
        with settings(chain="hoodi"):
            for run in (lambda f: f(), contextvars.copy_context().run):
                thread = threading.Thread(target=run, args=(lambda: seen.append(current().chain),))
                thread.start()
                thread.join()
        assert ["mainnet", "hoodi"] == seen

    def test_configure_drops_the_settings_of_the_previous_call(self):
        """The key of one address is not sent to the next."""
        configure(url="https://one.example", api_key=KEY, rate=7)
        configure(url="https://two.example")
        assert ("https://two.example", None, None) == (
            current().url,
            current().api_key,
            current().rate,
        )

    def test_invalid_settings_change_nothing(self):
        """All values are validated before any is set."""
        configure(chain="hoodi")
        with pytest.raises(ConfigError):
            configure(chain="mainnet", rate=-1)
        assert "hoodi" == current().chain


class TestValues:
    def test_every_setting_has_an_environment_variable(self, monkeypatch, tmp_path):
        """Every setting has a variable; its value gets its own type."""
        variables = {
            "URL": "https://explorer.example/prefix/",
            "API_KEY": KEY,
            "CHAIN": "hoodi",
            "RATE": "2.5",
            "STORE": str(tmp_path),
            "OFFLINE": "1",
            "FRAME": "pandas",
            "STRICT": "Yes",
            "PROGRESS": "false",
            "MAX_REQUESTS": "50",
            "NODE": f"https://user:{KEY}@node.example",
        }
        for name, text in variables.items():
            monkeypatch.setenv(f"BEACONFRAMES_{name}", text)
        expected = Settings(
            url="https://explorer.example/prefix",
            api_key=Secret(KEY),
            chain="hoodi",
            rate=2.5,
            store=tmp_path,
            offline=True,
            frame="pandas",
            strict=True,
            progress=False,
            max_requests=50,
            node=Secret(f"https://user:{KEY}@node.example"),
        )
        assert expected == current()
        assert KEY not in repr(current())

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("1", True),
            ("true", True),
            ("YES", True),
            (" yes ", True),
            ("on", True),
            ("off", False),
            ("0", False),
            ("False", False),
            ("no", False),
        ],
    )
    def test_boolean_variables_have_four_spellings(self, monkeypatch, text, expected):
        """1, true, yes and on are true; 0, false, no and off are false."""
        monkeypatch.setenv("BEACONFRAMES_OFFLINE", text)
        assert expected is current().offline

    def test_settings_take_numbers_of_numpy_and_paths(self, tmp_path):
        """As loaders do for every other number."""
        given = current(
            rate=np.float64(5),
            timeout=np.int64(3),
            max_requests=np.int64(7),
            store_limit=np.int64(9),
        )
        assert (5.0, (3.0, None), 7, 9) == (
            *(given.rate, given.timeout, given.max_requests, given.store_limit),
        )
        file = tmp_path / "devnet.toml"
        assert str(file) == current(chain=file).chain

    @pytest.mark.parametrize(
        ("variable", "text"),
        [
            ("RATE", "fast"),
            ("RATE", "0"),
            ("RATE", "-1"),
            ("RATE", "nan"),
            ("RATE", "inf"),
            ("RATE", "10/s"),
            ("OFFLINE", "maybe"),
            ("STRICT", "2"),
            ("PROGRESS", "ON!"),
            ("MAX_REQUESTS", "1.5"),
            ("FRAME", "duckdb"),
            ("URL", "ftp://explorer.example"),
            ("URL", "https://"),
            ("STORE", "~no-such-user-here/x"),
        ],
    )
    def test_an_invalid_variable_is_named(self, monkeypatch, variable, text):
        """The message names the variable."""
        monkeypatch.setenv(f"BEACONFRAMES_{variable}", text)
        with pytest.raises(ConfigError, match=f"^BEACONFRAMES_{variable}"):
            current()

    @pytest.mark.parametrize("field", dataclasses.fields(Settings), ids=lambda field: field.name)
    @pytest.mark.parametrize("text", ["", " "])
    def test_an_empty_variable_is_unset(self, monkeypatch, field, text):
        """C10: a line ``BEACONFRAMES_RATE=`` of an .env file chooses the default."""
        monkeypatch.setenv(f"BEACONFRAMES_{field.name.upper()}", text)
        assert Settings() == current()

    def test_an_overridden_variable_is_not_validated(self, monkeypatch):
        """An invalid variable is no error if an argument overrides it."""
        monkeypatch.setenv("BEACONFRAMES_RATE", "fast")
        assert 3.0 == current(rate=3).rate

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("rate", 0),
            ("rate", -2),
            ("rate", True),
            ("rate", float("nan")),
            ("rate", float("inf")),
            ("rate", 10**400),
            ("rate", "5"),
            ("offline", 1),
            ("offline", None),
            ("strict", "yes"),
            ("progress", 0),
            ("frame", "Polars"),
            ("frame", None),
            ("frame", ["polars"]),
            ("chain", ""),
            ("chain", None),
            ("chain", 1),
            ("store", ""),
            ("store", 3),
            ("url", 5),
            ("url", ""),
        ],
    )
    @pytest.mark.parametrize(
        "set_values", [configure, lambda **values: settings(**values).__enter__()]
    )
    def test_an_invalid_value_is_named(self, set_values, name, value):
        """The error names the setting."""
        with pytest.raises(ConfigError, match=name):
            set_values(**{name: value})

    def test_values_are_converted(self, tmp_path, monkeypatch):
        """An int rate becomes a float, a text a path, ``~`` the home folder."""
        monkeypatch.setenv("HOME", str(tmp_path))
        found = current(rate=3, store="~/stored")
        assert (3.0, float) == (found.rate, type(found.rate))
        assert tmp_path / "stored" == found.store
        assert Path("stored") == current(store=Path("stored")).store

    def test_a_custom_chain_is_returned_unchanged(self):
        """An object with a genesis is a chain, whatever its class."""
        own = SimpleNamespace(name="own", genesis=datetime(2026, 1, 1, tzinfo=UTC))
        assert own is current(chain=own).chain

    @pytest.mark.parametrize(
        ("name", "near"), [("apikey", "api_key"), ("Chain", "chain"), ("ofline", "offline")]
    )
    @pytest.mark.parametrize("set_values", [configure, current])
    def test_an_unknown_setting_gets_a_suggestion(self, set_values, name, near):
        """The error suggests a similar name and lists all settings."""
        with pytest.raises(ConfigError, match=f"did you mean '{near}'.*url, api_key, chain"):
            set_values(**{name: None})

    def test_an_unknown_setting_without_a_similar_name(self):
        """The error has only the list."""
        with pytest.raises(ConfigError, match=r"'xyzzy'\. Settings: url"):
            configure(xyzzy=1)

    def test_settings_cannot_be_changed(self):
        """Settings are frozen."""
        with pytest.raises(dataclasses.FrozenInstanceError):
            current().rate = 5


class TestAddresses:
    @pytest.mark.parametrize(
        ("url", "expected"),
        [
            ("https://explorer.example", "https://explorer.example"),
            ("https://explorer.example/", "https://explorer.example"),
            ("https://explorer.example:8443/proxy/v1/", "https://explorer.example:8443/proxy/v1"),
            ("HTTPS://Explorer.example", "HTTPS://Explorer.example"),
            ("http://127.0.0.1:8080", "http://127.0.0.1:8080"),
            ("http://[::1]:8080/", "http://[::1]:8080"),
        ],
    )
    def test_a_trailing_slash_is_removed(self, url, expected):
        """Host, port and path stay."""
        assert expected == check_url(url)

    @pytest.mark.parametrize(
        "url",
        [
            "",
            "explorer.example",
            "//explorer.example",
            "ftp://explorer.example",
            "file:///etc/passwd",
            "https://",
            "https:///path",
            "http://:80",
            "https://explorer.example:port",
            "https://explorer.example:99999",
            "https://[::1",
            "https://explorer .example",
            "https://explorer.example\n",
            "https://explorer.example\r\nX: y",
            "https://explorer.example/\x00",
            "https://explorer.example\\path",
            "https://explorer.example/api/v1",
            "http://127.0.0.1:8000/api/v2/ethereum/",
            "https://explorer.example?",
            "https://explorer.example/?a=b",
            "https://explorer.example/#top",
            "https://me@explorer.example",
            "https://@explorer.example",
            None,
            5,
            b"https://explorer.example",
            Path("https://explorer.example"),
        ],
    )
    def test_an_invalid_address_is_refused(self, url):
        """No scheme, no host, invalid characters, query, fragment, user, or the path of an API."""
        with pytest.raises(ConfigError, match=r"^the (url|address) "):
            check_url(url)

    @pytest.mark.parametrize(
        "url",
        [
            KEY,
            f"https://explorer.example/?apikey={KEY}",
            f"https://explorer.example/#{KEY}",
            f"https://{KEY}@explorer.example",
            f"https://me:{KEY}@explorer.example/?x",
        ],
    )
    def test_the_error_does_not_show_a_key_in_an_address(self, url):
        """Neither the message nor the traceback contains it."""
        with pytest.raises(ConfigError) as caught:
            configure(url=url)
        assert KEY not in "".join(traceback.format_exception(caught.value))
        assert "api_key=" in str(caught.value)

    @pytest.mark.parametrize(
        "url",
        [
            "http://explorer.example",
            "HTTP://explorer.example",
            "http://192.168.1.5:8080",
            "http://0.0.0.0",
            "http://localhost.explorer.example",
            "http://127.0.0.1.explorer.example",
            "http://[2001:db8::1]",
        ],
    )
    def test_a_key_is_not_sent_unencrypted(self, url):
        """Plain http to another machine is allowed without a key only."""
        assert url == check_url(url)
        with pytest.raises(ConfigError, match=r"unencrypted to .*https"):
            check_url(url, has_key=True)
        with pytest.raises(ConfigError, match="unencrypted"):
            current(url=url, api_key=KEY)

    @pytest.mark.parametrize(
        "url",
        [
            "http://127.0.0.1:8080",
            "http://127.8.9.10",
            "http://localhost:1234/x",
            "http://LOCALHOST",
            "http://[::1]:80",
            "https://explorer.example",
        ],
    )
    def test_a_key_is_allowed_for_loopback_and_https(self, url):
        """Both may have a key."""
        assert url == check_url(url, has_key=True)

    def test_a_key_of_the_environment_is_not_sent_unencrypted(self, monkeypatch):
        """The origin of key and address makes no difference."""
        monkeypatch.setenv("BEACONFRAMES_API_KEY", KEY)
        monkeypatch.setenv("BEACONFRAMES_URL", "http://explorer.example")
        with pytest.raises(ConfigError, match="unencrypted"):
            current()
        assert "http://explorer.example" == current(url="http://explorer.example").url


class TestKeysAndAddresses:
    """A key is sent to its own address only, at every level."""

    @pytest.fixture(autouse=True)
    def environment(self, monkeypatch):
        """Set a key in the environment."""
        monkeypatch.setenv("BEACONFRAMES_API_KEY", KEY)

    def test_an_address_of_a_higher_level_does_not_get_the_key(self):
        """An argument, a block or a connection with another address has no key."""
        assert current(url="https://other.example").api_key is None
        with settings(url="https://other.example") as inside:
            assert inside.api_key is None
        configure(url="https://other.example")
        assert current().api_key is None
        reset()
        assert Secret(KEY) == current().api_key

    def test_a_key_of_a_higher_level_is_used_with_the_address(self, monkeypatch):
        """The address of the lower level gets the key."""
        monkeypatch.setenv("BEACONFRAMES_URL", "https://explorer.example")
        assert Secret(KEY) == current().api_key
        assert Secret("mine") == current(api_key="mine").api_key
        with settings(api_key="mine") as inside:
            assert ("https://explorer.example", Secret("mine")) == (inside.url, inside.api_key)

    def test_an_inner_block_with_an_address_does_not_get_the_outer_key(self):
        """The end of the inner block restores the outer address and key."""
        with settings(url="https://one.example", api_key="one"):
            with settings(url="https://two.example") as inside:
                assert inside.api_key is None
                with settings(rate=1) as innermost:
                    assert innermost.api_key is None
            with settings(rate=1) as inside:
                assert Secret("one") == inside.api_key
            assert current(url="https://three.example").api_key is None
            assert Secret("one") == current().api_key

    def test_the_public_service_needs_its_own_key(self):
        """A block with ``url=None`` does not get the key of the connection."""
        configure(url="https://one.example", api_key="one")
        with settings(url=None) as inside:
            assert (None, None) == (inside.url, inside.api_key)


class TestSecrets:
    def test_reveal_returns_the_key(self):
        """Also for a secret made from a secret."""
        assert KEY == Secret(KEY).reveal()
        assert KEY == Secret(Secret(KEY)).reveal()

    @pytest.mark.parametrize(
        "show",
        [
            repr,
            str,
            ascii,
            "{}".format,
            "{!r:>40}".format,
            "{:>40}".format,
            lambda s: f"{s}",
            lambda s: "%s %r" % (s, s),  # noqa: UP031
            lambda s: str([s, {"key": s}]),
            lambda s: str(pickle.dumps(s)),
            lambda s: str(pickle.dumps(s, 0)),
            lambda s: str(pickle.loads(pickle.dumps(s))),
            lambda s: str(inspect.getmembers(s)),
            lambda s: str(dir(s)),
            lambda s: str(s.__reduce_ex__(4)),
            lambda s: str(s.__getstate__()),
            lambda s: str(Settings(api_key=s)),
            lambda s: str(vars(Settings(api_key=s))),
            lambda s: str(dataclasses.asdict(Settings(api_key=s))),
            lambda s: str(pickle.dumps(Settings(api_key=s))),
            lambda s: str(current(api_key=s)),
            lambda s: json.dumps(dataclasses.asdict(Settings(api_key=s)), default=repr),
        ],
    )
    def test_no_other_output_contains_the_key(self, show):
        """Neither texts nor pickles, member lists or settings contain it."""
        assert KEY not in show(Secret(KEY))

    def test_a_secret_has_no_attribute_dictionary(self):
        """``vars`` raises TypeError."""
        with pytest.raises(TypeError):
            vars(Secret(KEY))

    def test_a_log_line_shows_stars(self, caplog):
        """A log message contains stars instead of the key."""
        with caplog.at_level(logging.DEBUG):
            logging.getLogger("test").debug("key %s %r", Secret(KEY), Secret(KEY))
        assert "key *** Secret('***')" == caplog.messages[0]

    def test_copies_and_equality_of_secrets(self):
        """A copy is the same object; equality and hash depend on the key."""
        secret = Secret(KEY)
        assert copy.copy(secret) is secret
        assert copy.deepcopy({"a": secret})["a"] is secret
        assert {secret} == {Secret(KEY)}
        assert secret != Secret("other")
        assert secret != KEY

    def test_a_pickled_secret_has_no_key(self):
        """Q04: the error says how to set the key."""
        carried = pickle.loads(pickle.dumps(Settings(api_key=Secret(KEY), chain="hoodi")))
        assert "hoodi" == carried.chain
        with pytest.raises(ConfigError, match="BEACONFRAMES_API_KEY"):
            carried.api_key.reveal()

    @pytest.mark.parametrize(
        "key",
        [
            "",
            " ",
            KEY + "\n",
            " " + KEY,
            KEY + " x",
            KEY + "\r\nX: y",
            KEY + "\x00",
            KEY + "é",
            KEY + "\u200b",
            KEY.encode(),
            5,
            True,
            [KEY],
        ],
    )
    @pytest.mark.parametrize("set_values", [Secret, lambda key: configure(api_key=key)])
    def test_an_invalid_key_is_refused(self, set_values, key):
        """The message does not contain it."""
        with pytest.raises(ConfigError, match=r"^api_key is not a valid key") as caught:
            set_values(key)
        assert KEY not in "".join(traceback.format_exception(caught.value))

    def test_an_invalid_key_of_the_environment(self, monkeypatch):
        """The message names the variable, without its value."""
        monkeypatch.setenv("BEACONFRAMES_API_KEY", f"{KEY} {KEY}")
        with pytest.raises(
            ConfigError, match=r"^BEACONFRAMES_API_KEY is not a valid key"
        ) as caught:
            current()
        assert KEY not in str(caught.value)

    @pytest.mark.parametrize(
        "set_values", [configure, current, lambda **v: settings(**v).__enter__()]
    )
    def test_the_error_of_another_setting_does_not_show_the_key(self, set_values):
        """A traceback with local variables contains no key in frames of this module."""
        with pytest.raises(ConfigError) as caught:
            set_values(rate=-1, api_key=KEY, nonsense=2)
        story = traceback.TracebackException.from_exception(caught.value, capture_locals=True)
        ours = [frame for frame in story.stack if frame.filename == config.__file__]
        assert ours
        assert KEY not in "".join(str(frame.locals) for frame in ours)


@pytest.mark.parametrize(
    ("text", "value", "expected"),
    [
        ("30", 30, (30, None)),
        ("2.5,60", (2.5, 60), (2.5, 60)),
        (",60", (None, 60), (None, 60)),
    ],
)
def test_timeouts_are_one_number_or_two(monkeypatch, text, value, expected):
    """C2: for one request, and for a whole call; from the environment and as an argument."""
    assert expected == current(timeout=value).timeout
    monkeypatch.setenv("BEACONFRAMES_TIMEOUT", text)
    assert expected == current().timeout


@pytest.mark.parametrize("text", ["soon", "0", "-1", "1,2,3", "nan", "1,0"])
def test_an_invalid_timeout_is_named(monkeypatch, text):
    """C2: the error says which setting is wrong, and what it must be."""
    monkeypatch.setenv("BEACONFRAMES_TIMEOUT", text)

    with pytest.raises(ConfigError, match=r"BEACONFRAMES_TIMEOUT is .*number of seconds above 0"):
        current()
