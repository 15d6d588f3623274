// The state of the editor: what is edited, what the service says about it, and how it is saved.

import { api, Problem } from '../../api.js';
import { draftKey } from '../../draft.js';
import { latestOnly, prove, validate } from './check.js';
import { copyOf, editableDocument, emptyDocument, fitsForm, stablePointer } from './document.js';
import { DraftKeeper } from './drafts.js';
import { at, setAt } from './pointer.js';
import { newRequestKey } from './request-key.js';

/** @typedef {import('../../violations.js').Violation} Violation */

/** An id in the query of the address; anything else counts as absent. */
function idIn(query, name) {
  const value = query.get(name);
  return /^\d+$/.test(value ?? '') ? value : null;
}

export class Editor {
  /** @param {import('../../main.js').Context} context */
  constructor(context) {
    this.context = context;
    const { account } = /** @type {import('../../api.js').Session} */ (api.session);
    this.rulebook = account.rulebook;
    /** The id of the edited template; `null` for a new one. */
    this.id = context.params.id ?? null;
    this.from = idIn(context.query, 'from');
    this.languageOf = idIn(context.query, 'language_of');
    /** The template that is edited, duplicated or translated, as read. */
    this.source = null;
    this.sourceProof = null;
    this.etag = null;
    this.document = /** @type {any} any JSON value; `undefined` until it is there */ (undefined);
    /** The text of the JSON view; `null` while the form is shown. */
    this.text = null;
    this.jsonError = '';
    this.violations = /** @type {Violation[]} */ ([]);
    this.warnings = /** @type {Violation[]} */ ([]);
    this.moreViolations = this.moreWarnings = 0;
    this.proof = null;
    /** The document that violations and proof belong to. */
    this.checked = undefined;
    this.checkFailed = false;
    this.saving = false;
    this.problem = this.conflict = this.existingId = this.loadError = null;
    /** Samples by component (a stable pointer) and placeholder, those of removed placeholders included. */
    this.samples = new Map();
    /** Parts that were taken out while trying others, by stable pointer. */
    this.parked = new Map();
    this.nameTouched = false;
    /** A new document shows no violations before its first change. */
    this.isPristine = true;
    /** The number of shown violations that was told last. */
    this.toldCount = 0;
    this.requestKey = '';
    const subject =
      this.id ?? (this.from ? `from-${this.from}` : this.languageOf ? `language-of-${this.languageOf}` : 'new');
    this.account = account.id;
    this.draft = new DraftKeeper(
      this.#draftKey(subject),
      () => ({ document: this.document, etag: this.etag ?? undefined }),
      context.update,
    );
    // Two requests side by side: neither waits for the other.
    this.checker = latestOnly({
      run: (input, signal) => validate(input, this.id, signal),
      apply: (output, input) => this.#applyCheck(output, input),
      fail: () => this.#checkFailed(),
    });
    this.prover = latestOnly({
      run: prove,
      apply: (proof) => this.#applyProof(proof),
      fail: () => this.#applyProof(null),
    });
  }

  #draftKey(subject) {
    return draftKey(this.account, subject);
  }

  /** The violations to show. */
  get shownViolations() {
    return this.isPristine && this.id === null ? [] : this.violations;
  }

  get canSave() {
    return api.can('write');
  }

  /** Whether violations and proof belong to the present document. */
  get isChecked() {
    return this.checked !== undefined && this.checked === this.#input();
  }

  async load() {
    this.loadError = null;
    try {
      const sourceId = this.id ?? this.from ?? this.languageOf;
      if (sourceId !== null) {
        const { data, etag } = await api.get(`message_templates/${sourceId}`, { signal: this.context.signal });
        this.source = data;
        if (this.id !== null) this.etag = etag;
        if (this.languageOf !== null) void this.#loadSourceProof(sourceId);
      }
      this.document = this.#initialDocument();
      this.#restoreDraft();
      this.check({ now: true });
    } catch (error) {
      if (!this.context.signal.aborted) this.loadError = error;
    }
    this.context.update();
  }

  #initialDocument() {
    if (this.source === null) return emptyDocument(this.rulebook);
    if (this.id !== null) return editableDocument(this.source);
    return copyOf(this.source, this.languageOf !== null ? 'language' : 'copy', this.rulebook);
  }

  async #loadSourceProof(id) {
    try {
      const { data } = await api.get(`message_templates/${id}/proof`, { signal: this.context.signal });
      this.sourceProof = data;
      this.context.update();
    } catch {
      // The texts of the original are beside the fields anyway.
    }
  }

  #restoreDraft() {
    const draft = this.draft.restore(this.document);
    if (draft === null) return;
    this.document = draft.document;
    this.isPristine = false;
    // A draft of an older revision meets the newer one when it is saved.
    if (this.id !== null && draft.etag) this.etag = draft.etag;
    if (!fitsForm(this.document)) this.showJson();
  }

  async discardDraft() {
    this.draft.discard();
    this.samples.clear();
    this.parked.clear();
    Object.assign(this, { text: null, jsonError: '', conflict: null, problem: null, isPristine: true, nameTouched: false, toldCount: 0 });
    await this.load();
  }

  /** Sets another document, from the form. */
  change(document) {
    this.document = document;
    if (this.text !== null) this.text = JSON.stringify(document, null, 2);
    this.#changed();
  }

  /** Sets one value of the document. */
  set(pointer, value) {
    this.change(setAt(this.document, pointer, value));
  }

  value(pointer) {
    return at(this.document, pointer);
  }

  /** Sets the text of the JSON view; the document follows whenever it is JSON. */
  changeText(text) {
    this.text = text;
    try {
      this.document = JSON.parse(text);
      this.jsonError = '';
    } catch (error) {
      this.jsonError = error instanceof Error ? error.message : String(error);
    }
    this.#changed();
  }

  /** Forgets what was remembered of the items of a list: their order changes, and they have no other name. */
  forget(list) {
    const prefix = `${stablePointer(this.document, list)}/`;
    for (const memory of [this.samples, this.parked]) {
      for (const key of memory.keys()) if (key.startsWith(prefix)) memory.delete(key);
    }
  }

  showJson() {
    this.text = JSON.stringify(this.document, null, 2);
    this.jsonError = '';
    this.context.update();
  }

  showForm() {
    if (this.jsonError !== '' || !fitsForm(this.document)) return;
    this.text = null;
    this.check();
    this.context.update();
  }

  #changed() {
    this.isPristine = false;
    this.requestKey = '';
    this.problem = null;
    this.existingId = null;
    this.draft.schedule();
    this.check();
    this.context.update();
  }

  /** The text that is checked and saved: as typed in the JSON view, so that no duplicate key is lost. */
  #input() {
    return this.text ?? JSON.stringify(this.document);
  }

  check(options) {
    if (this.jsonError !== '') return this.stop();
    this.checker.schedule(this.#input(), options);
    this.prover.schedule(this.#input(), options);
  }

  /** Forgets checks that wait or run. */
  stop() {
    this.checker.stop();
    this.prover.stop();
  }

  #applyCheck(validation, input) {
    this.violations = validation.violations ?? [];
    this.warnings = validation.warnings ?? [];
    this.moreViolations = validation.more ?? 0;
    this.moreWarnings = validation.more_warnings ?? 0;
    this.checked = input;
    this.checkFailed = false;
    this.context.update();
    const { length: count } = this.shownViolations;
    if (count === this.toldCount) return;
    this.toldCount = count;
    this.onCountChange?.(count);
  }

  #applyProof(proof) {
    this.proof = proof;
    this.context.update();
  }

  #checkFailed() {
    this.checkFailed = true;
    this.context.update();
  }

  /**
   * Saves; returns the template's id and status, or `null` if it was not saved. `isChanged` says that the author has
   * gone on writing meanwhile: the later text stays as a draft.
   * @returns {Promise<{id: string, status: string, isChanged: boolean} | null>}
   */
  async save() {
    this.isPristine = false;
    if (this.saving || !this.canSave || this.jsonError !== '') return null;
    this.saving = true;
    this.problem = null;
    this.conflict = null;
    this.context.update();
    this.draft.keep();
    const sent = this.#input();
    try {
      return await this.#send(sent);
    } catch (error) {
      if (!this.context.signal.aborted) await this.#saveFailed(error, sent);
      return null;
    } finally {
      this.saving = false;
      this.context.update();
    }
  }

  async #send(text) {
    if (this.id === null) this.requestKey ||= newRequestKey();
    const { data, etag } =
      this.id === null
        ? await api.post('message_templates', { text, idempotencyKey: this.requestKey })
        : await api.patch(`message_templates/${this.id}`, { text, ifMatch: this.etag });
    const saved = { id: this.id ?? data.id, status: data.status, isChanged: !this.#isStill(text) };
    if (saved.isChanged) this.#goOn(saved.id, etag);
    else {
      this.stop();
      this.draft.discard();
    }
    return saved;
  }

  /** What was written during the save becomes an edit of the saved revision. */
  #goOn(id, etag) {
    this.etag = etag;
    if (this.id === null) {
      this.stop();
      return this.draft.moveTo(this.#draftKey(id));
    }
    this.draft.keep();
    if (!this.context.signal.aborted) this.check({ now: true });
  }

  /** Whether the document is still that of a text, however that is laid out. */
  #isStill(text) {
    return this.jsonError === '' && JSON.stringify(JSON.parse(this.#input())) === JSON.stringify(JSON.parse(text));
  }

  async #saveFailed(error, sent) {
    if (!(error instanceof Problem)) {
      this.problem = error;
      return;
    }
    if (error.slug === 'revision-outdated') return this.#loadConflict();
    const isAboutText = error.slug === 'invalid-template' || error.slug === 'name-taken';
    // It concerns the text that was sent; a later one is checked for itself.
    if (isAboutText && !this.#isStill(sent)) return this.check({ now: true });
    if (error.slug === 'invalid-template') {
      this.violations = error.violations;
      this.checked = this.#input();
    } else if (error.slug === 'name-taken') {
      this.existingId = error.body.existing_id ?? null;
      const violation = { pointer: '/name', rule: 'name-taken', message: error.title, hint: error.detail };
      this.violations = [...this.violations.filter((it) => it.rule !== 'name-taken'), violation];
    } else this.problem = error;
  }

  async #loadConflict() {
    try {
      const { data, etag } = await api.get(`message_templates/${this.id}`, { signal: this.context.signal });
      this.conflict = { theirs: editableDocument(data), etag, version: data.version };
    } catch (error) {
      this.problem = error;
    }
  }

  /** Ends a conflict: with the own document, which the next save puts over the compared version, or with the saved one. */
  settle(choice) {
    const { theirs, etag } = this.conflict;
    this.etag = etag;
    this.conflict = null;
    if (choice === 'mine') return;
    this.draft.discard();
    this.document = theirs;
    this.text = null;
    this.check({ now: true });
    this.context.update();
  }

  dispose() {
    this.stop();
    this.draft.flush();
  }
}
