"""The mutations: in every layer a promise, taken out of the code in a line or two, and the test that notices.

A mutation is found by the qualified name of what it is in, and by its text, which must stand there exactly
once; in which module that is does not matter.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Mutation:
    name: str
    where: str
    """The qualified name of a function, class or variable of a module."""
    old: str
    new: str
    test: str
    """By the file's name, and its own; with parameters, one of several."""
    always: bool = False
    """Taken in a quick run, too."""


_JOURNAL = [
    Mutation(
        "appends are not synced",
        "sync_data",
        '    if sys.platform == "darwin":',
        '    return\n    if sys.platform == "darwin":',
        "test_journal.py::test_an_append_is_synced_before_it_returns",
    ),
    Mutation(
        "the name of a new file is not synced",
        "sync_folder",
        "os.fsync(fd)",
        "pass",
        "test_journal.py::test_the_name_of_a_file_begun_anew_is_synced",
    ),
    Mutation(
        "a batch that is there already is not synced",
        "Transaction.write",
        "elif self._sync:",
        "elif False:",
        "test_journal.py::test_a_batch_known_already_is_synced_all_the_same",
    ),
    Mutation(
        "documents are not synced",
        "write_document",
        "            os.fsync(fd)\n",
        "",
        "test_durability.py::test_what_is_kept_is_on_the_disk",
    ),
    Mutation(
        "documents are written in their place",
        "write_document",
        "temporary.replace(path)",
        "path.write_bytes(data)",
        "test_durability.py::test_what_is_kept_is_on_the_disk",
    ),
    Mutation(
        "a failed document leaves its half behind",
        "write_document",
        "temporary.unlink(missing_ok=True)",
        "pass",
        "test_journal.py::test_a_failed_document_leaves_the_old_one",
    ),
    Mutation(
        "no lock between processes",
        "Journal._wait_for_lock",
        "portalocker.lock(fd, portalocker.LockFlags.EXCLUSIVE | portalocker.LockFlags.NON_BLOCKING)",
        "pass",
        "test_journal.py::test_a_lock_held_too_long_is_reported",
    ),
    Mutation(
        "locks are waited for longer than the SDK waits",
        "LOCK_TIMEOUT_S",
        "LOCK_TIMEOUT_S = ",
        "LOCK_TIMEOUT_S = 70.0 or ",
        "test_durability.py::test_an_append_gives_up_before_the_sdk_does",
        always=True,
    ),
    Mutation(
        "a file that was moved away is still appended to",
        "is_at",
        "return os.path.samestat(os.fstat(fd), os.stat(path))",
        "return True",
        "test_journal.py::test_a_file_moved_away_while_an_append_waits",
    ),
    Mutation(
        "a line is glued to a torn one",
        "Transaction._open_tail",
        'return b"\\n"',
        'return b""',
        "test_journal.py::test_a_torn_last_line_is_closed_off",
    ),
    Mutation(
        "a failed write is not undone",
        "Transaction._roll_back",
        "os.ftruncate(self._fd, self.size)",
        "pass",
        "test_journal.py::test_an_interrupted_write_is_undone",
    ),
    Mutation(
        "a late rollback takes what another wrote",
        "Transaction._finish_rollback",
        "if size == self.size > to:",
        "if self.size > to:",
        "test_journal.py::test_a_late_rollback_never_takes_what_another_wrote",
    ),
    Mutation(
        "a look under the lock leaves an empty journal",
        "Journal.locked",
        "if created and transaction.size == 0 and",
        "if False and",
        "test_journal.py::test_a_lock_alone_leaves_no_file",
    ),
    Mutation(
        "a uuid is stored twice",
        "Transaction.write",
        "new = self._new_in(batch)",
        "new = batch",
        "test_journal.py::test_a_uuid_is_stored_once",
    ),
    Mutation(
        "a nested uuid is taken for an entry's",
        "Seen.new_in",
        "known = _verified(path, suspects) if suspects else set[bytes]()",
        "known = suspects",
        "test_journal.py::test_a_nested_uuid_is_no_duplicate",
    ),
    Mutation(
        "a damaged line is lost as a whole",
        "read_line",
        "entries, damage = salvage(line, before, decode(next_line))",
        "entries, damage = list[Entry](), [Damage(0, len(line))]",
        "test_cases.py::test_case_006_torn_event_glued_to_whole_event",
    ),
    Mutation(
        "line separators are written as they are",
        "encode",
        "line = _escape_line_separators(line)",
        "pass",
        "test_journal.py::test_a_line_is_readable_text_with_escapes_where_a_reader_would_stumble",
    ),
    Mutation(
        "a move is not synced",
        "move",
        "    sync_folder(target.parent)\n",
        "",
        "test_journal.py::test_moving_is_durable",
    ),
    Mutation(
        "a folder that is gone is made anew",
        "check",
        "raise FolderGone(Path(place))",
        "return",
        "test_roots.py::test_nothing_of_a_workspace_is_made_anew",
    ),
    Mutation(
        "a child of fork() keeps its parent's locks",
        "_in_child",
        "held.leave_to_parent()",
        "pass",
        "test_children.py::test_a_child_does_not_hold_the_lock",
    ),
]

_STORE = [
    Mutation(
        "a session that was never written is an empty one",
        "FileSessionStore._load",
        "return None",
        "return []",
        "test_store.py::test_an_unknown_key_is_none_and_an_empty_file_is_not",
    ),
    Mutation(
        "duplicates are loaded twice",
        "FileSessionStore._load",
        "list(_unique(iter(contents.entries)))",
        "contents.entries",
        "test_store.py::test_duplicates_from_elsewhere_are_loaded_once",
    ),
    Mutation(
        "a bound store uses the key that it is handed",
        "BoundSessionStore._bound",
        '{**key, "project_key": self.project_key}',
        "{**key}",
        "test_store.py::test_a_bound_store_keeps_one_project_together",
    ),
    Mutation(
        "deleting deletes",
        "FileStorage._put_away",
        "durable.move(path, trash)",
        "path.unlink()",
        "test_store.py::test_deleting_moves_to_the_trash",
    ),
    Mutation(
        "a cancelled append lands late",
        "to_the_end",
        "while not call.is_over():",
        "while False:",
        "test_threads.py::test_an_append_that_was_cancelled_natively_never_lands_late",
    ),
]

_TASKS = [
    Mutation(
        "turns are not synced",
        "TaskManager._turns",
        '"turns", task.id, draft)',
        '"turns", task.id, draft, durability="os")',
        "test_durability.py::test_what_is_kept_is_on_the_disk",
        always=True,
    ),
    Mutation(
        "turns go by their place in the file",
        "TaskManager.turns",
        'sorted(_latest(Turn, entries, "uuid").values(), key=lambda turn: turn.number)',
        'list(_latest(Turn, entries, "uuid").values())[::-1]',
        "test_order.py::test_case_111_the_log_is_in_order_under_a_clock_that_goes_back",
    ),
    Mutation(
        "what a later version wrote of a task is dropped",
        "TaskManager.update_each",
        "_over(line, to_line(changed[-1]))",
        "to_line(changed[-1])",
        "test_manager.py::test_newer_fields_survive_an_update",
    ),
    Mutation(
        "a dropped draft is still written",
        "TaskManager.draft",
        "if draft is None or draft.dropped:",
        "if draft is None:",
        "test_manager.py::test_a_dropped_draft_is_put_away_for_good",
    ),
]

_DRAFTS = [
    Mutation(
        "revisions are not synced",
        "Workspace.text",
        '"revisions", task.id, draft)',
        '"revisions", task.id, draft, durability="os")',
        "test_durability.py::test_what_is_kept_is_on_the_disk",
        always=True,
    ),
    Mutation(
        "a hand edit is written over",
        "DraftText._catch_up",
        "transaction.append([line_of(hand_edit)])",
        "return revisions",
        "test_draft_text.py::test_a_hand_edit_in_the_middle_of_a_turn_is_not_lost",
    ),
    Mutation(
        "a rewrite replaces what its author never saw",
        "DraftText.write",
        "if base is not None and",
        "if False and",
        "test_draft_text.py::test_a_rewrite_does_not_replace_what_its_author_never_saw",
    ),
    Mutation(
        "a save at the last moment is written over",
        "DraftText._append",
        "if slipped_in not in (None, before):",
        "if False:",
        "test_draft_text.py::test_a_save_at_the_very_last_moment_is_kept",
    ),
    Mutation(
        "a crash before the file is a hand edit",
        "DraftText._is_behind",
        "return sha256_of_bytes(waiting) == current[-1].sha256",
        "return False",
        "test_draft_text.py::test_a_crash_between_revision_and_file_is_no_hand_edit",
    ),
    Mutation(
        "the text is in its file before it is recorded",
        "DraftText._append",
        "        transaction.append([line_of(revision)])\n        slipped_in = self._settled(before)\n",
        "        durable.move(self._next, self._place)\n        transaction.append([line_of(revision)])\n"
        "        return\n        slipped_in = self._settled(before)\n",
        "test_draft_text.py::test_a_crash_before_the_revision_leaves_no_trace",
    ),
    Mutation(
        "half an article becomes the text",
        "DraftText.keep_cut_off",
        '{"aside": True, "cut_off": True}',
        '{"cut_off": True}',
        "test_calls.py::test_a_version_that_was_cut_off_is_kept_once",
    ),
    Mutation(
        "a version that was cut off is kept again and again",
        "DraftText.keep_cut_off",
        "earlier.turn == turn and earlier.text == text",
        "False",
        "test_calls.py::test_a_version_that_was_cut_off_is_kept_once",
    ),
    Mutation(
        "an edit lands in a passage that the writer changed",
        "_found",
        "if at is None or places:",
        "if at is None:\n        at = text.find(old)\n    if places:",
        "test_draft_text.py::test_an_edit_lands_where_it_was_meant_or_not_at_all",
    ),
    Mutation(
        "a call that was taken back is forgotten",
        "Calls.take",
        "                call.over = True\n",
        "                del self._calls[event.call]\n",
        "test_calls.py::test_what_was_taken_back_leaves_a_version_unless_it_comes_anew",
    ),
    Mutation(
        "of half a call nothing is left",
        "_after",
        "    if not said:\n",
        "    if not said or not call.whole:\n",
        "test_calls.py::test_half_a_call_leaves_the_text_that_the_draft_would_have_had",
    ),
]

_LEASES = [
    Mutation(
        "two write one draft",
        "Lease._lock",
        "portalocker.lock(fd, portalocker.LockFlags.EXCLUSIVE | portalocker.LockFlags.NON_BLOCKING)",
        "pass",
        "test_lease.py::test_one_at_a_time",
    ),
    Mutation(
        "a lease is released before its CLI is gone",
        "Actor._writing",
        "                await writer.hang_up()\n",
        "                lease.release()\n                await writer.hang_up()\n",
        "test_turn_edges.py::test_a_lease_outlives_the_cli",
        always=True,
    ),
    Mutation(
        "a lock file alone blocks",
        "_held_by",
        "return None if _is_free(fd) else _holder(",
        "return _holder(",
        "test_lease.py::test_whether_a_lease_is_held",
    ),
    Mutation(
        "an error keeps a draft locked",
        "Lease.__exit__",
        "        self.release()",
        "        if kind is None:\n            self.release()",
        "test_lease.py::test_an_error_while_writing_releases",
    ),
]

_TURNS = [
    Mutation(
        "the live journal is emptied before the cut-off answer is recorded",
        "Opening.start",
        "        tasks.record(self.task, draft, [*cut_off.values()])\n        self._of.live.begin()\n",
        "        self._of.live.begin()\n        tasks.record(self.task, draft, [*cut_off.values()])\n",
        "test_turn_edges.py::test_killed_at_any_write_of_the_next_turn_what_was_cut_off_is_there",
        always=True,
    ),
    Mutation(
        "a turn that was cut off keeps no answer",
        "Opening._cut_off",
        "self._of.live.partial_text(turn.number)",
        '""',
        "test_turn_edges.py::test_killed_at_any_write_of_the_next_turn_what_was_cut_off_is_there",
    ),
    Mutation(
        "a turn that was cut off keeps no article",
        "Opening._cut_off",
        "        self._of.live.calls(turn.number).keep(self._of.text)\n",
        "        pass\n",
        "test_turn_edges.py::test_killed_at_any_write_of_the_next_turn_what_was_cut_off_is_there",
    ),
    Mutation(
        "a session that is missing is begun anew",
        "Opening._is_stored",
        "raise SessionMissing(self.task.address(self.draft.name), transcript.path)",
        "return False",
        "test_main_job.py::test_a_missing_transcript_is_never_a_fresh_session",
    ),
    Mutation(
        "a turn is finished with words in memory alone",
        "DraftWriter._unkept",
        "if self._of.keeper.all_kept or",
        "if True or",
        "test_full_disk.py::test_what_no_disk_takes_is_said_in_full",
    ),
    Mutation(
        "a stopped turn loses its article",
        "DraftWriter._keep_cut_off",
        "await run_sync(self._answer.calls.keep, self._of.text)",
        "[]",
        "test_articles.py::test_a_stopped_turn_keeps_the_article_as_far_as_it_had_come",
    ),
    Mutation(
        "a prompt that waits is not on the disk",
        "Actor.keep",
        "await run_sync(self.outbox.put, sent.id, sent.prompt)",
        "pass",
        "test_outbox.py::test_what_waits_at_a_stop",
    ),
    Mutation(
        "a prompt whose turn has begun waits on",
        "Outbox.waiting",
        "if id not in gone and id not in begun and id not in found:",
        "if id not in gone and id not in found:",
        "test_outbox.py::test_killed_at_any_write_a_prompt_waits_or_has_its_turn",
    ),
    Mutation(
        "a prompt that was taken does not wait, whether its turn has begun or not",
        "Outbox.waiting",
        'entry.get("type") == "withdrawn"',
        'entry.get("type") in ("withdrawn", "taken")',
        "test_outbox.py::test_killed_at_any_write_a_prompt_waits_or_has_its_turn",
    ),
]

_SPOOL = [
    Mutation(
        "what comes is stored past what waits",
        "Keeper._write",
        "            self._settle()\n",
        "",
        "test_keeper.py::test_nothing_is_stored_past_what_waits",
    ),
    Mutation(
        "what no disk takes is dropped",
        "Keeper._put_aside",
        "        except OSError:\n            return",
        "        except OSError:\n            del self._in_memory[0]\n            return",
        "test_keeper.py::test_what_no_disk_takes_is_not_dropped",
    ),
    Mutation(
        "what waits is put away before it is stored",
        "Spool._place",
        "            self.place(part)\n",
        "            pass\n",
        "test_recovery.py::test_the_spool_is_replayed_first",
    ),
    Mutation(
        "a copy takes in what is the other's",
        "Elsewhere._is_ours",
        "return (was_here or not Path(folder).is_dir()) and self._knows(head)",
        "return self._knows(head)",
        "test_full_disk.py::test_a_copy_does_not_take_in_what_is_the_others",
    ),
    Mutation(
        "words are kept where others may read them",
        "_make_private",
        "if not _is_private(folder):",
        "if False:",
        "test_full_disk.py::test_a_folder_that_others_could_have_made_is_left_alone",
    ),
]

_LIVE = [
    Mutation(
        "events are told before they are on the disk",
        "Broadcast.flush",
        "            try:\n                placed =",
        "            for event in events:\n                self._tell(event)\n"
        "            try:\n                placed =",
        "test_broadcast.py::test_nothing_is_told_that_is_not_on_disk",
    ),
    Mutation(
        "what a full disk did not take is forgotten",
        "Broadcast.flush",
        "self._unkept += events",
        "pass",
        "test_broadcast.py::test_what_a_full_disk_did_not_take_is_kept_with_the_next",
    ),
    Mutation(
        "positions begin anew after a restart",
        "_last_position",
        "return max(positions, default=time.time_ns() // 1_000_000)",
        "return 0",
        "test_broadcast.py::test_positions_survive_a_restart_and_the_loss_of_the_file",
    ),
    Mutation(
        "half a line is read",
        "LiveReader.read",
        'whole = data[: data.rfind(b"\\n") + 1]',
        "whole = data",
        "test_broadcast.py::test_a_torn_line_is_waited_for",
    ),
    Mutation(
        "who missed something is not told so",
        "LiveReader._new",
        'found.append(Reload(task="", draft="", position=entry["position"]))',
        "pass",
        "test_broadcast.py::test_a_position_too_old_yields_one_reload",
    ),
    Mutation(
        "what an attempt had said stays when it is taken back",
        "Heard.take",
        "                self._drop(event.characters)",
        "                pass",
        "test_broadcast.py::test_what_was_taken_back_is_no_part_of_the_answer",
    ),
]

_RECOVERY = [
    Mutation(
        "a folder is removed with what nobody kept",
        "remove_folders",
        "                _keep_the_rest(workspace, folder)\n",
        "",
        "test_orphans.py::test_the_answer_of_a_turn_that_others_followed",
    ),
    Mutation(
        "a CLI that still writes is not left to end",
        "recover_draft",
        "if orphans.of_sessions(clis, identity(draft.workspace.hidden).id, sessions_of(draft)):",
        "if False:",
        "test_orphans.py::test_a_living_cli_is_left_to_end",
    ),
    Mutation(
        "a second CLI beside one that still writes",
        "still_writing",
        "return orphans.of_sessions(orphans.living(), mine, sessions_of(draft))",
        "return []",
        "test_orphans.py::test_asked_again_at_once_after_the_crash",
    ),
    Mutation(
        "a copy of a workspace removes the other's folder",
        "orphans_of",
        "and mark in (mine, None) and",
        "and",
        "test_orphans.py::test_a_copy_of_the_workspace_leaves_the_folder",
    ),
    Mutation(
        "a folder that anybody could have made is trusted",
        "is_private",
        "return stat.S_ISDIR(status.st_mode) and _is_mine(status) and not status.st_mode & 0o022",
        "return True",
        "test_orphans.py::test_a_forged_folder_is_not_looked_at",
    ),
    Mutation(
        "whatever a CLI's copy says is taken in",
        "take_in",
        "list(descendants(reading.read(copy).entries, prompts))",
        "reading.read(copy).entries",
        "test_orphans.py::test_only_what_goes_back_to_the_prompt_is_taken_in",
    ),
    Mutation(
        "a turn that was given up does not get its answer",
        "recover_draft",
        "also_settled=taken_in",
        "also_settled=False",
        "test_orphans.py::test_the_answer_of_a_turn_that_was_given_up",
    ),
    Mutation(
        "an article that an orphan wrote is lost",
        "_settle",
        "            calls.finish(id, tool, fields)\n",
        "            pass\n",
        "test_orphans.py::test_a_call_that_nobody_answered_becomes_a_version",
    ),
    Mutation(
        "a draft that is being written is settled as dead",
        "recover",
        "with contextlib.suppress(DraftBusy), draft.lease():",
        "with contextlib.suppress(DraftBusy):",
        "test_recovery.py::test_others_are_left_alone",
    ),
    Mutation(
        "a copy keeps the id of the other workspace",
        "_path",
        "{hidden.stat().st_ino}",
        "0",
        "test_identity.py::test_a_copy_gets_an_id_of_its_own",
    ),
]

_MEMORY = [
    Mutation(
        "what was accepted and cut off is not completed",
        "Proposals._complete",
        "completed.append(self._add(transaction, one))",
        "pass",
        "test_proposals.py::test_what_a_crash_left_is_completed_by_the_next",
    ),
    Mutation(
        "what was rejected comes back",
        "Proposals._same",
        "one.state is ProposalState.rejected and said == same_words(one.text)",
        "False",
        "test_proposals.py::test_what_was_rejected_does_not_come_back",
    ),
    Mutation(
        "a proposed line may be a heading",
        "checked",
        "line = item(text)",
        "line = text.strip()",
        "test_proposals.py::test_a_hostile_line_is_one_item",
    ),
    Mutation(
        "a line is replaced whatever it says by now",
        "with_accepted",
        "    if len(equal) != 1:\n",
        "    equal = equal or [0]\n    if False:\n",
        "test_proposals.py::test_what_was_changed_meanwhile_is_not_replaced",
    ),
    Mutation(
        "a hand edit of the memory is written over",
        "change",
        "if _bytes(target) == before:",
        "if True:",
        "test_proposals.py::test_a_hand_edit_meanwhile_is_kept",
    ),
    Mutation(
        "a memory file closes its section",
        "section",
        "neutral(text.strip())",
        "text.strip()",
        "test_collection.py::test_a_text_cannot_leave_its_section",
    ),
    Mutation(
        "a changed version of the memory is taken for the old one",
        "FileStorage.kept",
        "if hashlib.sha256(data).hexdigest() != sha256:",
        "if False:",
        "test_versions.py::test_a_version_that_was_changed_is_never_taken_for_the_old_one",
    ),
    Mutation(
        "a file above is not replaced by the one of its name",
        "Collection.memory",
        "kept, replaced = _without_replaced(found)",
        "kept, replaced = found, []",
        "test_collection.py::test_a_file_replaces_the_one_of_its_name_above",
    ),
]

_FORKS = [
    Mutation(
        "a fork goes on from the origin's end",
        "_fork_session",
        "cut(entries, {turn.uuid for turn in plan.later})",
        "cut(entries, ())",
        "test_drafting.py::test_rewinding_takes_the_model_back_and_keeps_what_came_after",
    ),
    Mutation(
        "a fork has the origin's latest text",
        "_text_after",
        "latest or revision.turn <= number",
        "True",
        "test_drafting.py::test_rewinding_takes_the_model_back_and_keeps_what_came_after",
    ),
    Mutation(
        "what a fork left that crashed is taken for its own",
        "fork",
        "        await run_sync(clear_leftovers, new)\n",
        "",
        "test_lost.py::test_a_fork_begun_anew_has_nothing_of_the_one_that_was_cut_off",
    ),
    Mutation(
        "a fork is cut in the middle of a command",
        "cut",
        "entries[: _start_of_turn(entries, first)]",
        "entries[:first]",
        "test_transcript.py::test_a_compaction_belongs_to_the_turn_that_asked_for_it",
    ),
]

_TRANSCRIPT = [
    Mutation(
        "the CLI's fillers are words",
        "words",
        "if not _FILLER.fullmatch(text):",
        "if True:",
        "test_speakers.py::test_every_kind_of_filler_is_nobodys",
    ),
    Mutation(
        "an error of the API is the model's answer",
        "_SERVICE",
        '"isApiErrorMessage", ',
        "",
        "test_speakers.py::test_every_kind_of_filler_is_nobodys",
    ),
    Mutation(
        "what the CLI says in the model's name is the model's",
        "speaker",
        'message.get("model") == CLI_MODEL',
        "False",
        "test_speakers.py::test_every_kind_of_filler_is_nobodys",
    ),
    Mutation(
        "an abandoned line of a conversation is shown",
        "_last_said",
        "reversed(entries) if uuid in ends",
        "entries if uuid in ends",
        "test_transcript.py::test_an_abandoned_line_is_not_said",
    ),
    Mutation(
        "an answer goes on into the next turn",
        "of_turn",
        'if entry.get("uuid") in later:',
        "if False:",
        "test_transcript.py::test_an_answer_ends_where_the_next_prompt_begins",
    ),
    Mutation(
        "after a compaction the model is held to know the text",
        "known_after",
        "if is_command(turn.prompt) and turn.state in ANSWERED:",
        "if False:",
        "test_draft_text.py::test_a_summary_holds_no_text",
    ),
    Mutation(
        "after a compaction in a turn its prompt is gone",
        "DraftWriter._after_compaction",
        "[again(self._said)] if self._answer.under_way else []",
        "[]",
        "test_compaction.py::test_a_turn_goes_on_after_a_compaction_with_its_prompt",
    ),
]

_SAFETY = [
    Mutation(
        "what a model says acts on the terminal",
        "harmless",
        "    if not _ANY.search(text):",
        "    if True:",
        "test_terminal.py::test_every_sequence_wherever_it_is_split",
    ),
    Mutation(
        "a command writes over a file that is there",
        "check",
        "if not force and os.path.lexists(path):",
        "if False:",
        "test_output.py::test_a_file_that_is_there",
    ),
    Mutation(
        "an export goes into the workspace's records",
        "_check_place",
        "if HIDDEN in parts[:-1]:",
        "if False:",
        "test_output.py::test_no_slip_costs_what_a_workspace_keeps",
    ),
    Mutation(
        "records can be read by other users",
        "_open",
        "0o600",
        "0o644",
        "test_safety.py::test_what_is_kept_is_nobody_elses",
    ),
    Mutation(
        "folders of records are open to other users",
        "make_folder",
        "0o700 if private or bounds.is_record(folder) else 0o777",
        "0o777",
        "test_orphans.py::test_what_is_made_is_private",
    ),
    Mutation(
        "a link in the records leads outside",
        "check_record",
        "_check_allowed(Path(part), Path(os.path.realpath(part)))",
        "pass",
        "test_safety.py::test_links_in_the_records",
    ),
    Mutation(
        "a name in the records leads outside",
        "_plain",
        "if not is_plain_name(name):",
        "if False:",
        "test_safety.py::test_values_that_lead_outside",
    ),
    Mutation(
        "another user's workspace is used unasked",
        "Workspace.__init__",
        "        bounds.check_owner(self.root)\n",
        "",
        "test_safety.py::test_the_workspace_of_another_user",
    ),
    Mutation(
        "a pipe in a draft's place is an empty text",
        "_check_regular",
        "if not stat.S_ISREG(status.st_mode):",
        "if False:",
        "test_safety.py::test_a_draft_that_is_no_file_of_the_workspace",
    ),
]

MUTATIONS = [
    *_JOURNAL,
    *_STORE,
    *_TASKS,
    *_DRAFTS,
    *_LEASES,
    *_TURNS,
    *_SPOOL,
    *_LIVE,
    *_RECOVERY,
    *_MEMORY,
    *_FORKS,
    *_TRANSCRIPT,
    *_SAFETY,
]
