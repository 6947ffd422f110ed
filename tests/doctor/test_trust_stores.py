"""Doctor looks for certificates exactly where a download does: on another distribution it must not say there are none."""

from truststore import _openssl

from bcd.doctor.probes import DISTRIBUTION_STORES, trust_stores


def test_the_distributions_stores_are_those_of_the_library_that_downloads_use() -> None:
    assert sorted(DISTRIBUTION_STORES) == sorted(_openssl._CA_FILE_CANDIDATES)
    assert set(DISTRIBUTION_STORES) <= set(trust_stores())
