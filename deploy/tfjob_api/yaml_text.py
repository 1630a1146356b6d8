"""Documents -> YAML as a person would write it: fields in their order, texts of several lines as blocks."""

from typing import Any, Mapping, Sequence

import yaml


class Dumper(yaml.SafeDumper):
    """Indents lists under their keys, and knows no anchors: the documents share values."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)  # type: ignore[no-untyped-call]

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


Dumper.add_representer(str, _represent_text)


def to_yaml(documents: Sequence[Mapping[str, Any]]) -> str:
    return "---\n".join(
        yaml.dump(document, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=110)
        for document in documents
    )
