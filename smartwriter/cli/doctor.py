"""The ``doctor`` command."""

from __future__ import annotations

from pathlib import Path

import click

from smartwriter.cli.app import as_json, in_workspace, print_json
from smartwriter.cli.terminal import secho
from smartwriter.doctor.examine import examine
from smartwriter.doctor.finding import Finding
from smartwriter.errors import SmartWriterError
from smartwriter.text.wording import counted
from smartwriter.workspace import Workspace


@click.command()
@click.option("--repair", is_flag=True, help="Do what each line proposes. Old files are kept beside.")
@as_json
@in_workspace
@click.pass_context
def doctor_command(context: click.Context, workspace: Workspace, repair: bool, json_: bool) -> None:
    """Read everything and prove that it can be used. Exit code 1 if anything is found."""
    findings = list(examine(workspace))
    if repair:
        findings = _repaired(workspace, findings)
    if json_:
        print_json([_as_dict(finding) for finding in findings])
    else:
        for finding in findings:
            click.echo(_line(finding))
        tasks = len(workspace.tasks.all())
        click.echo(
            counted(len(findings), "finding") + "."
            if findings
            else f"All is well: {counted(tasks, 'task')}, every file read."
        )
    context.exit(1 if findings else 0)


def _repaired(workspace: Workspace, findings: list[Finding]) -> list[Finding]:
    """Repair, each once, and what is still found then: a repair may bring other things to light."""
    tried: set[tuple[str, Path, str]] = set()
    while repairable := [one for one in findings if one.repair and _identity(one) not in tried]:
        failed = {_identity(finding): error for finding in repairable if (error := _failure(finding))}
        tried.update(map(_identity, repairable))
        findings = list(examine(workspace))
        still = {_identity(finding) for finding in findings}
        for finding in repairable:
            why = failed.get(_identity(finding)) or "it is found again after its repair"
            if _identity(finding) in still:
                secho(f"Not repaired: {finding.path} {finding.what}; {why}.", err=True, fg="red")
            else:
                click.echo(f"Repaired: {finding.path} {finding.what}; it was to {finding.remedy}.", err=True)
    return findings


def _identity(finding: Finding) -> tuple[str, Path, str]:
    """The same before and after a repair that changed nothing, and after one that did a part."""
    return finding.kind, finding.path, finding.remedy


def _failure(finding: Finding) -> str:
    """Repair; what went wrong, if anything."""
    assert finding.repair is not None
    try:
        finding.repair()
    except (SmartWriterError, OSError) as error:
        return str(error).rstrip(".")
    return ""


def _line(finding: Finding) -> str:
    proposal = f" --repair: {finding.remedy}." if finding.remedy else ""
    return f"{finding.path} {finding.what}: {finding.meaning}.{proposal}"


def _as_dict(finding: Finding) -> dict[str, str]:
    return {
        "kind": finding.kind,
        "path": str(finding.path),
        "what": finding.what,
        "meaning": finding.meaning,
        "remedy": finding.remedy,
    }
