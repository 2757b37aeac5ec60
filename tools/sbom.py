"""Makes dist/quotahost.cdx.json: what the jar and the wheel contain, as a CycloneDX bill of materials.

``python -m tools.sbom`` lists the other projects' classes in the jar, and the jars and native libraries in the wheel,
each with its hash, source and licence. Then it lists the packages that the wheel requires, in the versions of
requirements.lock. The same files always give the same bytes.
"""

import hashlib
import re
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

from cyclonedx.model import HashAlgorithm, HashType
from cyclonedx.model.bom import Bom, BomMetaData
from cyclonedx.model.component import Component, ComponentScope, ComponentType
from cyclonedx.model.license import DisjunctiveLicense
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL

ROOT = Path(__file__).resolve().parent.parent
DIST = ROOT / "dist"
BILL = DIST / "quotahost.cdx.json"
# The Maven group by artifact, for the jars of other projects in the wheel.
MAVEN_GROUPS = {
    "commons-pool2": "org.apache.commons",
    "kafka-clients": "org.apache.kafka",
    "spark-sql-kafka-0-10_2.13": "org.apache.spark",
    "spark-token-provider-kafka-0-10_2.13": "org.apache.spark",
}
APACHE = DisjunctiveLicense(id="Apache-2.0")


PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def _component(name: str, version: str, content: bytes = b"", url: PackageURL | None = None, **more: Any) -> Component:
    """A library under the Apache licence that is delivered, if ``more`` doesn't say otherwise."""
    hashes = [HashType(alg=HashAlgorithm.SHA_256, content=hashlib.sha256(content).hexdigest())] if content else []
    kind = {"type": ComponentType.LIBRARY, "scope": ComponentScope.REQUIRED, "licenses": [APACHE]} | more
    return Component(name=name, version=version, hashes=hashes, purl=url, bom_ref=f"{name}@{version}", **kind)


def in_jar(jar: zipfile.ZipFile) -> Iterator[Component]:
    """The components of other projects in quotahost.jar."""
    lines = jar.read("META-INF/quotahost/versions.properties").decode().splitlines()
    versions = dict(line.split("=") for line in lines)
    jpype = versions["jpype"]
    classes = b"".join(jar.read(name) for name in sorted(jar.namelist()) if "org/jpype/" in name)
    yield _component("org.jpype", jpype, classes, PackageURL("pypi", name="jpype1", version=jpype))


def in_wheel(wheel: zipfile.ZipFile) -> Iterator[Component]:
    """The jars in the wheel, which are quotahost's own and Spark's, and the libraries in machine code."""
    for name in sorted(wheel.namelist()):
        if "/native/" in name:
            yield _component(name, PROJECT["version"], wheel.read(name), type=ComponentType.FILE)
        if not name.endswith(".jar"):
            continue
        content = wheel.read(name)
        artifact, _, version = Path(name).stem.rpartition("-")
        if artifact in MAVEN_GROUPS:
            url = PackageURL("maven", MAVEN_GROUPS[artifact], artifact, version)
        else:
            url = PackageURL("maven", "org.quotahost", "quotahost", PROJECT["version"])
        yield _component(name, str(url.version), content, url)


def asked_for() -> Iterator[Component]:
    """The packages that pip installs beside the wheel, in the versions that were tested."""
    locked = dict(re.findall(r"^([\w.-]+)==([^ ;\\]+)", (ROOT / "requirements.lock").read_text(), re.MULTILINE))
    for requirement in PROJECT["dependencies"]:
        name = re.split(r"[^\w.-]", requirement)[0].lower()
        url = PackageURL("pypi", name=name, version=locked[name])
        yield _component(name, locked[name], url=url, scope=ComponentScope.EXCLUDED, licenses=[])


def bill() -> str:
    """The bill of materials in JSON.

    Raises:
        FileNotFoundError: the jar or the wheel has not been built.
    """
    version = PROJECT["version"]
    url = PackageURL("pypi", name="quotahost", version=version)
    own = _component("quotahost", version, url=url, type=ComponentType.APPLICATION)
    wheel_file = DIST / f"quotahost-{version}-py3-none-any.whl"
    with zipfile.ZipFile(DIST / "quotahost.jar") as jar, zipfile.ZipFile(wheel_file) as wheel:
        components = [*in_jar(jar), *in_wheel(wheel), *asked_for()]
    digest = hashlib.sha256(wheel_file.read_bytes()).digest()
    bom = Bom(
        metadata=BomMetaData(component=own), components=components, serial_number=UUID(bytes=digest[:16], version=4)
    )
    bom.register_dependency(own, components)
    bom.metadata.timestamp = None  # type: ignore[assignment]
    return JsonV1Dot6(bom).output_as_string(indent=2)


if __name__ == "__main__":
    BILL.write_text(bill() + "\n")
