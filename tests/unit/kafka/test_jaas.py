"""Which options a JAAS configuration has, however it is written."""

import pytest

from quotahost.kafka.listeners import login_name, options

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required "


@pytest.mark.parametrize(
    ("text", "username", "password"),
    [
        ('username="al" password="p";', "al", "p"),
        ("password=p username=al;", "al", "p"),
        ('"username"="al" "password"="p";', "al", "p"),
        (r'username="a\"l" password="it\'s \\";', 'a"l', "it's \\"),
        ('user_a="b" "password"="\\"username\\"=c" "username"="al";', "al", '"username"=c'),
        ('password="secret username=mallory" username="al";', "al", "secret username=mallory"),
        (r'password="username=\"mallory\"" username="al";', "al", 'username="mallory"'),
        ('password="x; username=mallory" username="al";', "al", "x; username=mallory"),
        ('username="" password="p";', "", "p"),
        ('username="first" username="al" password="p";', "al", "p"),
        ('username = "al"\n password\t= p;', "al", "p"),
        ("username=al password=p==;", "al", "p=="),
        ("username='al' password='it is \"p\"';", "al", 'it is "p"'),
        (r'username="a\tl" password="\160\061";', "a\tl", "p1"),
        ('/* username="old" */ username="al" // password="old"\n password="p//q";', "al", "p//q"),
    ],
)
def test_user_and_password_are_found(text: str, username: str, password: str) -> None:
    found = options(PLAIN + text)
    assert (found["username"], found["password"]) == (username, password)


@pytest.mark.parametrize("text", ["", ";", "hunter2", PLAIN, 'username="open'])
def test_what_is_not_there_is_not_found(text: str) -> None:
    assert login_name(text, "PLAIN") is None


@pytest.mark.parametrize(
    ("mechanism", "text", "name"),
    [
        ("GSSAPI", 'Krb5LoginModule required principal="kafka/host.example@REALM" useKeyTab=true;', "kafka"),
        ("GSSAPI", 'Krb5LoginModule required username="al";', None),
        ("OAUTHBEARER", 'OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="al";', "al"),
        ("OAUTHBEARER", 'OAuthBearerLoginModule required clientId="c" clientSecret="hunter2";', None),
        ("SCRAM-SHA-512", 'ScramLoginModule required username="al" password="p";', "al"),
    ],
)
def test_each_mechanism_names_its_principal_in_its_own_way(mechanism: str, text: str, name: str | None) -> None:
    assert login_name(text, mechanism) == name
