"""The ``doctor`` command."""

from __future__ import annotations

import click

from smartwriter.cli.app import as_json, in_workspace, print_json
from smartwriter.doctor import Finding, examine
from smartwriter.workspace import Workspace

_MOST_ROUNDS = 3


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
            _counted(len(findings), "finding") + "."
            if findings
            else f"All is well: {_counted(tasks, 'task')}, every file read."
        )
    context.exit(1 if findings else 0)


def _repaired(workspace: Workspace, findings: list[Finding]) -> list[Finding]:
    """Repair, and what is still found then: a repair may bring other things to light."""
    for _ in range(_MOST_ROUNDS):
        repairable = [finding for finding in findings if finding.repair is not None]
        if not repairable:
            break
        for finding in repairable:
            assert finding.repair is not None
            finding.repair()
            click.echo(f"Repaired: {finding.path} {finding.what}; it was to {finding.remedy}.", err=True)
        findings = list(examine(workspace))
    return findings


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


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
