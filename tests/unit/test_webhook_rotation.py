"""rotation, phrases, certificates: what a new key must prove, and what people compare."""

import dataclasses
import hashlib
from datetime import timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import NameOID
from hypothesis import given
from hypothesis import strategies as st

from governor.errors import ConfigError, LocalError
from governor.webhook.certificates import (
    CERTIFICATE_LIMIT,
    certificate_fingerprint,
    check_certificate,
    make_certificate,
    new_tls_key,
    tls_pem,
)
from governor.webhook.encodings import from_base64, from_instant
from governor.webhook.phrases import checked_words, phrase
from governor.webhook.rotation import OVERLAP_LIMIT, RotationProof, overlap_end, rotate_data
from governor.webhook.signing import Context, VerifyKey, sign_in_context
from tests.webhook_samples import EVA, MALLORY, MAX, MAX_FP, NOW, sample_certificate

DAY = timedelta(days=1)


def test_the_new_key_proves_itself() -> None:
    data = rotate_data(MAX_FP, MALLORY, sample_certificate(), NOW + DAY)
    proof = RotationProof(
        MAX_FP, VerifyKey.from_public(data["new_public_key"]), from_base64(data["new_certificate"])
    )
    assert proof.accepts(from_base64(data["proof"]))
    assert from_instant(data["overlap_until"]) == NOW + DAY


def test_a_proof_is_good_for_one_change_only() -> None:
    proof = RotationProof(MAX_FP, MALLORY.verify_key, sample_certificate())
    signature = sign_in_context(MALLORY, Context.ROTATION, proof.payload())
    assert proof.accepts(signature)
    for other in (
        dataclasses.replace(proof, old_fp=EVA.verify_key.fingerprint),
        dataclasses.replace(proof, new_key=EVA.verify_key),
        dataclasses.replace(proof, new_certificate=sample_certificate() + b"x"),
    ):
        assert not other.accepts(signature)


def test_nobody_else_can_prove_it() -> None:
    proof = RotationProof(MAX_FP, MALLORY.verify_key, sample_certificate())
    assert not proof.accepts(sign_in_context(MAX, Context.ROTATION, proof.payload()))
    assert not proof.accepts(sign_in_context(MALLORY, Context.RECEIPT, proof.payload()))


@given(
    st.timedeltas(min_value=-400 * DAY, max_value=400 * DAY),
    st.timedeltas(max_value=9 * DAY, min_value=-9 * DAY),
)
def test_an_overlap_is_bounded_whatever_the_other_clock_says(asked: timedelta, ahead: timedelta) -> None:
    end = overlap_end(NOW, NOW + ahead, NOW + ahead + asked)
    assert end == NOW + min(max(asked, timedelta(0)), OVERLAP_LIMIT)


def test_a_phrase_is_six_words_of_the_key_and_the_certificate() -> None:
    raw, der = MAX.verify_key.raw, sample_certificate()
    words = phrase(raw, b"certificate")
    assert words == phrase(raw, b"certificate")
    assert len(words.split()) == 6
    assert len({words, phrase(raw, der), phrase(EVA.verify_key.raw, der), phrase(raw, der + b"x")}) == 4


def test_a_phrase_is_the_first_66_bits_of_scrypt_over_the_bip39_list() -> None:
    from mnemonic import Mnemonic  # noqa: PLC0415 - only here

    digest = hashlib.scrypt(
        b"k" * 32 + b"c", salt=b"bridge-governor/phrase/1", n=2**15, r=8, p=1, maxmem=2**26, dklen=9
    )
    bits = "".join(f"{byte:08b}" for byte in digest)
    words = Mnemonic("english").wordlist
    expected = " ".join(words[int(bits[at : at + 11], 2)] for at in range(0, 66, 11))
    assert phrase(b"k" * 32, b"c") == expected


@pytest.mark.parametrize("words", [[], ["a"] * 2048, [str(number) for number in range(2047)]])
def test_a_word_list_that_carries_fewer_bits_is_refused(words: list[str]) -> None:
    with pytest.raises(ValueError, match="2048"):
        checked_words(words)


def test_a_certificate_says_what_tls_needs() -> None:
    key = new_tls_key()
    der = make_certificate(key, "max-host", ["max.example", "100.64.0.7", "fd7a::1"], NOW, 30 * DAY)
    check_certificate(der, NOW)
    assert certificate_fingerprint(der) == hashlib.sha256(der).hexdigest()
    certificate = x509.load_der_x509_certificate(der)
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["max.example"]
    assert [str(ip) for ip in names.get_values_for_type(x509.IPAddress)] == ["100.64.0.7", "fd7a::1"]
    assert certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value == "max-host"
    assert certificate.not_valid_before_utc < NOW < NOW + 30 * DAY == certificate.not_valid_after_utc


def test_no_two_certificates_have_one_subject() -> None:
    key = new_tls_key()
    made = [
        make_certificate(key, "max-host", ["a.example"], NOW, DAY),
        make_certificate(key, "max-host", ["a.example"], NOW + DAY, DAY),
        make_certificate(new_tls_key(), "max-host", ["a.example"], NOW, DAY),
    ]
    found = [x509.load_der_x509_certificate(der) for der in made]
    assert len({certificate.subject.rfc4514_string() for certificate in found}) == 3
    assert len({certificate.serial_number for certificate in found}) == 3


def test_the_pem_file_holds_both() -> None:
    key = new_tls_key()
    der = make_certificate(key, "max-host", ["a.example"], NOW, DAY)
    pem = tls_pem(key, der)
    assert x509.load_pem_x509_certificate(pem).public_bytes(serialization.Encoding.DER) == der
    loaded = serialization.load_pem_private_key(pem, None)
    assert isinstance(loaded, ec.EllipticCurvePrivateKey)
    assert loaded.private_numbers() == key.private_numbers()


@pytest.mark.parametrize("host", ["ü.example", "höst"])
def test_a_host_that_is_no_name_is_refused(host: str) -> None:
    with pytest.raises(ConfigError, match="neither"):
        make_certificate(new_tls_key(), "max-host", [host], NOW, DAY)


def _certificate(key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey, *, ca: bool | None) -> bytes:
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "max-host")])
    builder = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(NOW - DAY)
        .not_valid_after(NOW + DAY)
    )
    if ca is not None:
        builder = builder.add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
    return builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.DER)


def test_other_certificates_are_refused() -> None:
    p256 = ec.generate_private_key(ec.SECP256R1())
    check_certificate(_certificate(p256, ca=False), NOW)
    for der, reason in (
        (_certificate(p256, ca=True), "vouch"),
        (_certificate(p256, ca=None), "damaged"),
        (_certificate(ec.generate_private_key(ec.SECP384R1()), ca=False), "P-256"),
        (_certificate(rsa.generate_private_key(65537, 2048), ca=False), "P-256"),
        (b"", "damaged"),
        (b"c" * (CERTIFICATE_LIMIT + 1), "too long"),
        (sample_certificate() + b"x", "damaged"),
        (sample_certificate()[:-1], "damaged"),
    ):
        with pytest.raises(LocalError, match=reason):
            check_certificate(der, NOW)


def test_a_certificate_has_its_time() -> None:
    der = make_certificate(new_tls_key(), "max-host", ["a.example"], NOW, DAY)
    check_certificate(der, NOW - timedelta(hours=23))
    for at in (NOW - timedelta(hours=25), NOW + DAY, NOW + 2 * DAY):
        with pytest.raises(LocalError, match="not valid now"):
            check_certificate(der, at)


def test_no_byte_that_a_certificate_signs_can_change() -> None:
    der = sample_certificate()
    signed = x509.load_der_x509_certificate(der).tbs_certificate_bytes
    start = der.index(signed)
    for place in range(start, start + len(signed)):
        changed = der[:place] + bytes([der[place] ^ 1]) + der[place + 1 :]
        with pytest.raises(LocalError):
            check_certificate(changed, NOW)
