"""Settings come from the right place, and a key is never shown."""

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

import pytest

from beaconframes import config
from beaconframes.config import Secret, Settings, check_url, configure, current, reset, settings
from beaconframes.errors import ConfigError

KEY = "marker-9f8e7d6c5b4a"


@pytest.fixture(autouse=True)
def bare(monkeypatch):
    """Begin and end without settings from elsewhere."""
    for field in dataclasses.fields(Settings):
        monkeypatch.delenv(f"BEACONFRAMES_{field.name.upper()}", raising=False)
    reset()
    yield
    reset()


class TestOrder:
    def test_nothing_said_gives_the_defaults(self):
        """Without any setting it is mainnet, polars, no key, online."""
        expected = {
            "url": None,
            "api_key": None,
            "chain": "mainnet",
            "rate": None,
            "store": None,
            "offline": False,
            "frame": "polars",
            "strict": False,
            "progress": None,
            "state": None,
            "max_requests": None,
        }
        assert expected == dataclasses.asdict(current())

    def test_argument_block_connect_environment_default(self, monkeypatch):
        """Each place overrules the ones below it, and only for the setting it names."""
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

    def test_an_argument_that_is_none_was_not_given(self):
        """A loader passes its None on, and the setting below holds."""
        configure(rate=2, frame="pandas")
        assert (2.0, "pandas") == (current(rate=None).rate, current(frame=None).frame)

    def test_none_in_a_block_takes_a_setting_away(self, monkeypatch):
        """A block can say "no key" although the environment has one."""
        monkeypatch.setenv("BEACONFRAMES_API_KEY", KEY)
        with settings(api_key=None) as inside:
            assert inside.api_key is None
        assert Secret(KEY) == current().api_key
        configure(api_key=None)
        assert current().api_key is None

    def test_blocks_nest_and_restore(self):
        """An inner block adds to the outer one and takes only its own away."""
        with settings(frame="pandas", rate=5):
            with settings(rate=6) as inside:
                assert ("pandas", 6.0) == (inside.frame, inside.rate)
            assert ("pandas", 5.0) == (current().frame, current().rate)
        assert ("polars", None) == (current().frame, current().rate)

    def test_a_block_restores_after_an_error(self):
        """An exception inside the block ends the block as well."""
        with pytest.raises(KeyError), settings(strict=True):
            raise KeyError("x")
        assert current().strict is False

    def test_a_block_that_cannot_begin_changes_nothing(self, monkeypatch):
        """A block over a broken environment fails and leaves nothing behind."""
        monkeypatch.setenv("BEACONFRAMES_RATE", "fast")
        with pytest.raises(ConfigError), settings(strict=True):
            pass
        monkeypatch.delenv("BEACONFRAMES_RATE")
        assert current().strict is False

    def test_a_block_belongs_to_its_thread(self):
        """Another thread does not see the block, unless it is given the context."""
        seen = []
        with settings(chain="hoodi"):
            for run in (lambda f: f(), contextvars.copy_context().run):
                thread = threading.Thread(target=run, args=(lambda: seen.append(current().chain),))
                thread.start()
                thread.join()
        assert ["mainnet", "hoodi"] == seen

    def test_connecting_again_forgets_the_first_connection(self):
        """The key of one address is not carried over to the next."""
        configure(url="https://one.example", api_key=KEY, rate=7)
        configure(url="https://two.example")
        assert ("https://two.example", None, None) == (
            current().url,
            current().api_key,
            current().rate,
        )

    def test_a_refused_connection_leaves_the_old_one(self):
        """Values are checked before anything is changed."""
        configure(chain="hoodi")
        with pytest.raises(ConfigError):
            configure(chain="mainnet", rate=-1)
        assert "hoodi" == current().chain


class TestValues:
    def test_the_environment_is_read(self, monkeypatch, tmp_path):
        """Every setting has its variable, and each comes in its own type."""
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
        )
        assert expected == current()

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("1", True),
            ("true", True),
            ("YES", True),
            (" yes ", True),
            ("0", False),
            ("False", False),
            ("no", False),
        ],
    )
    def test_switches_are_read_as_people_write_them(self, monkeypatch, text, expected):
        """1, true and yes switch on; 0, false and no switch off."""
        monkeypatch.setenv("BEACONFRAMES_OFFLINE", text)
        assert expected is current().offline

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
            ("PROGRESS", "on"),
            ("MAX_REQUESTS", "1.5"),
            ("FRAME", "duckdb"),
            ("URL", "ftp://explorer.example"),
            ("URL", "https://"),
            ("STORE", "~no-such-user-here/x"),
        ],
    )
    def test_a_wrong_variable_is_named(self, monkeypatch, variable, text):
        """The message names the variable, so that it can be found."""
        monkeypatch.setenv(f"BEACONFRAMES_{variable}", text)
        with pytest.raises(ConfigError, match=f"^BEACONFRAMES_{variable}"):
            current()

    @pytest.mark.parametrize("field", dataclasses.fields(Settings), ids=lambda field: field.name)
    @pytest.mark.parametrize("text", ["", " "])
    def test_an_empty_variable_is_named(self, monkeypatch, field, text):
        """A variable that is set but empty is a mistake, not a default."""
        variable = f"BEACONFRAMES_{field.name.upper()}"
        monkeypatch.setenv(variable, text)
        with pytest.raises(ConfigError, match=f"^{variable} is empty"):
            current()

    def test_a_wrong_variable_that_is_overruled_does_not_matter(self, monkeypatch):
        """What nobody will use is not judged."""
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
    @pytest.mark.parametrize("say", [configure, lambda **values: settings(**values).__enter__()])
    def test_a_wrong_value_is_named(self, say, name, value):
        """What cannot work is refused where it is said, by its name."""
        with pytest.raises(ConfigError, match=name):
            say(**{name: value})

    def test_values_get_their_own_type(self, tmp_path, monkeypatch):
        """An int rate becomes a float, a textual folder a path, a home sign the home."""
        monkeypatch.setenv("HOME", str(tmp_path))
        found = current(rate=3, store="~/kept")
        assert (3.0, float) == (found.rate, type(found.rate))
        assert tmp_path / "kept" == found.store
        assert Path("kept") == current(store=Path("kept")).store

    def test_a_chain_of_ones_own_is_kept_as_it_is(self):
        """A chain is known by what it has, not by its class."""
        own = SimpleNamespace(name="own", genesis=datetime(2026, 1, 1, tzinfo=UTC))
        assert own is current(chain=own).chain

    @pytest.mark.parametrize(
        ("name", "near"), [("apikey", "api_key"), ("Chain", "chain"), ("ofline", "offline")]
    )
    @pytest.mark.parametrize("say", [configure, current])
    def test_an_unknown_setting_gets_a_suggestion(self, say, name, near):
        """A slip of the pen is answered with the name that was meant and the list of all."""
        with pytest.raises(ConfigError, match=f"did you mean '{near}'.*url, api_key, chain"):
            say(**{name: None})

    def test_an_unknown_setting_that_resembles_none_lists_all(self):
        """Without a near name there is no guess, only the list."""
        with pytest.raises(ConfigError, match=r"'xyzzy'\. Settings: url"):
            configure(xyzzy=1)

    def test_settings_cannot_be_changed(self):
        """Settings in force are facts."""
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
    def test_an_address_is_kept_without_its_last_slash(self, url, expected):
        """Host, port and path prefix stay; the slash at the end goes."""
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
    def test_what_is_no_address_is_refused(self, url):
        """No scheme, no host, odd characters, query, fragment or user: refused."""
        with pytest.raises(ConfigError, match="the url"):
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
    def test_a_key_inside_an_address_is_not_shown(self, url):
        """A key in the wrong place is refused without being repeated."""
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
    def test_a_key_is_not_sent_in_the_clear(self, url):
        """Plain http to another machine works without a key only."""
        assert url == check_url(url)
        with pytest.raises(ConfigError, match=r"in the clear to .*https"):
            check_url(url, has_key=True)
        with pytest.raises(ConfigError, match="in the clear"):
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
    def test_a_key_may_stay_on_this_machine(self, url):
        """Loopback and https may carry a key."""
        assert url == check_url(url, has_key=True)

    def test_a_key_of_the_environment_is_not_sent_in_the_clear_either(self, monkeypatch):
        """Where the key and the address come from makes no difference."""
        monkeypatch.setenv("BEACONFRAMES_API_KEY", KEY)
        monkeypatch.setenv("BEACONFRAMES_URL", "http://explorer.example")
        with pytest.raises(ConfigError, match="in the clear"):
            current()
        assert "http://explorer.example" == current(url="http://explorer.example").url


class TestKeysAndAddresses:
    """A key goes with its own address, wherever the two were said."""

    @pytest.fixture(autouse=True)
    def environment(self, monkeypatch):
        """Set a key in the environment."""
        monkeypatch.setenv("BEACONFRAMES_API_KEY", KEY)

    def test_an_address_given_above_a_key_does_not_get_it(self):
        """An argument, a block or a connection to another address leaves the key behind."""
        assert current(url="https://other.example").api_key is None
        with settings(url="https://other.example") as inside:
            assert inside.api_key is None
        configure(url="https://other.example")
        assert current().api_key is None
        reset()
        assert Secret(KEY) == current().api_key

    def test_a_key_given_above_an_address_goes_to_it(self, monkeypatch):
        """Who names a key knows the address below it."""
        monkeypatch.setenv("BEACONFRAMES_URL", "https://explorer.example")
        assert Secret(KEY) == current().api_key
        assert Secret("mine") == current(api_key="mine").api_key
        with settings(api_key="mine") as inside:
            assert ("https://explorer.example", Secret("mine")) == (inside.url, inside.api_key)

    def test_inner_blocks_do_not_take_the_key_of_outer_ones(self):
        """A block within a block is a new address too, and the outer one returns after it."""
        with settings(url="https://one.example", api_key="one"):
            with settings(url="https://two.example") as inside:
                assert inside.api_key is None
                with settings(rate=1) as innermost:
                    assert innermost.api_key is None
            with settings(rate=1) as inside:
                assert Secret("one") == inside.api_key
            assert current(url="https://three.example").api_key is None
            assert Secret("one") == current().api_key

    def test_going_back_to_the_public_service_needs_its_own_key(self):
        """The key of a connection does not follow into a block without address."""
        configure(url="https://one.example", api_key="one")
        with settings(url=None) as inside:
            assert (None, None) == (inside.url, inside.api_key)


class TestSecrets:
    def test_a_secret_tells_only_when_asked(self):
        """``reveal`` gives the key."""
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
    def test_nothing_else_shows_it(self, show):
        """No text, pickle, member list or settings object contains the key."""
        assert KEY not in show(Secret(KEY))

    def test_it_has_no_vars(self):
        """There is no attribute dictionary to print."""
        with pytest.raises(TypeError):
            vars(Secret(KEY))

    def test_a_log_line_shows_stars(self, caplog):
        """A logged key is stars."""
        with caplog.at_level(logging.DEBUG):
            logging.getLogger("test").debug("key %s %r", Secret(KEY), Secret(KEY))
        assert "key *** Secret('***')" == caplog.messages[0]

    def test_a_copy_is_the_secret_itself_and_equal_keys_are_equal(self):
        """Copies work here; equality and hashing go by the key."""
        secret = Secret(KEY)
        assert copy.copy(secret) is secret
        assert copy.deepcopy({"a": secret})["a"] is secret
        assert {secret} == {Secret(KEY)}
        assert secret != Secret("other")
        assert secret != KEY

    def test_a_pickled_secret_asks_for_the_key_again(self):
        """In another process the key is missing, and the error says how to give it."""
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
    @pytest.mark.parametrize("say", [Secret, lambda key: configure(api_key=key)])
    def test_a_malformed_key_is_refused_unseen(self, say, key):
        """Keys that no header can carry are refused, and the message does not repeat them."""
        with pytest.raises(ConfigError, match=r"^api_key is no key") as caught:
            say(key)
        assert KEY not in "".join(traceback.format_exception(caught.value))

    def test_a_malformed_key_of_the_environment_names_its_variable(self, monkeypatch):
        """The variable is named, its value is not."""
        monkeypatch.setenv("BEACONFRAMES_API_KEY", f"{KEY} {KEY}")
        with pytest.raises(ConfigError, match=r"^BEACONFRAMES_API_KEY is no key") as caught:
            current()
        assert KEY not in str(caught.value)

    @pytest.mark.parametrize("say", [configure, current, lambda **v: settings(**v).__enter__()])
    def test_another_wrong_setting_does_not_show_the_key(self, say):
        """Even a traceback that prints local variables shows stars from our own frames."""
        try:
            say(rate=-1, api_key=KEY, nonsense=2)
        except ConfigError as error:
            story = traceback.TracebackException.from_exception(error, capture_locals=True)
        ours = [frame for frame in story.stack if frame.filename == config.__file__]
        assert ours
        assert KEY not in "".join(str(frame.locals) for frame in ours)
