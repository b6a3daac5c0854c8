// What a Longshore plugin in JavaScript needs of its host, in plain words: tools, progress, questions, logging.
//
// Copy this file beside your plugin. It has no dependencies, and nothing in it is private to the examples; what it does not
// cover is in `task`, `log` and `notify`, which are the host's own functions (see wit/).

import * as task from 'longshore:plugin/task@0.1.0';
import * as log from 'longshore:plugin/log@0.1.0';
import * as notify from 'longshore:plugin/notify@0.1.0';

export { task, notify };

const CODE = { invalidParams: -32602, internal: -32603, missingCapability: -32021 };

/**
 * The tools of a plugin. Export it under this name: `export const tools = plugin([...])`.
 *
 * @param {Array<{
 *   name: string,                 // 1 to 128 of A-Z a-z 0-9 _ . -
 *   title?: string,               // for a person
 *   description?: string,         // for a model: what it does, when to use it
 *   input?: object,               // JSON Schema of the arguments; the host refuses what does not fit before `run` is called
 *   output?: object,              // JSON Schema of a result that is an object
 *   task?: 'forbidden' | 'optional' | 'required',   // whether a call may become a task; 'optional' if left out
 *   asksFirst?: boolean,          // its questions come before the task, which is made by `task.begin()`
 *   hints?: { readOnly?: boolean, destructive?: boolean, idempotent?: boolean, openWorld?: boolean },
 *   meta?: object,
 *   run: (args: object) => any,   // may be async
 * }>} list
 */
export function plugin(list) {
  const byName = new Map(list.map((tool) => [tool.name, tool]));
  return {
    list: () => list.map(definition),
    async call(name, args) {
      const tool = byName.get(name);
      if (!tool) throw wire(new RpcError(CODE.invalidParams, `there is no tool ${name}`));
      let result;
      try {
        result = toResult(await tool.run(JSON.parse(args)));
      } catch (error) {
        result = toFailure(error);
      }
      if (result) complete(result);
    },
  };
}

function definition(tool) {
  return {
    name: tool.name,
    title: tool.title,
    description: tool.description,
    inputSchema: JSON.stringify({ type: 'object', ...tool.input }),
    outputSchema: json(tool.output),
    annotations: tool.hints && { ...tool.hints },
    icons: [],
    meta: json(tool.meta),
    taskSupport: tool.task ?? 'optional',
    asksFirst: tool.asksFirst ?? false,
  };
}

/**
 * A result built by hand. Without it a string that `run` returns is text, and any other value is structured content with a
 * copy as text.
 */
export class Result {
  /** @param {{ content?: object[], structured?: any, isError?: boolean, meta?: object }} parts */
  constructor({ content = [], structured, isError = false, meta }) {
    this.raw = { content, structuredContent: json(structured), isError, meta: json(meta) };
  }
}

/** Content of a `Result`: text. */
export const text = (text) => ({ tag: 'text', val: { text } });

/** Content of a `Result`: a picture (`Uint8Array`, as in "image/png"). */
export const image = (data, mimeType) => ({ tag: 'image', val: { data, mimeType } });

/**
 * Throw it if the *request* is wrong; the client gets a JSON-RPC error. Any other error that `run` throws says that the
 * *work* failed: the model reads its message and may try again.
 */
export class RpcError extends Error {
  /** @param {number} code -32602 (invalid params), -32603 (internal), or one outside -32768..-32000 */
  constructor(code, message, data) {
    super(message);
    Object.assign(this, { code, data });
  }
}

/** The caller wants the work to end. Thrown where the run stops early; let it pass. */
export class Interrupted extends Error {}

/** Says how far the work has got. `done` must grow; `message` is one line for a person. */
export function progress(done, total, message) {
  task.reportProgress(done, total, message);
}

/** Throws `Interrupted` if the caller wants the work to end. Call it in long loops. */
export function stopIfCancelled() {
  if (task.cancelled()) throw new Interrupted('the caller wants the work to end');
}

/** Waits. A cancellation ends it early. */
export const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/**
 * Asks the user to fill in a form, and waits for the answer, however long it takes.
 *
 * @param {string} message for the user
 * @param {object} properties a JSON Schema for each field: strings, numbers, booleans and enumerations
 * @param {{ name?: string, optional?: string[] }} [options] a name for the question, which clients see; fields that may be
 *   left empty
 * @returns {object | null} the filled form; `null` if the user declined or closed it
 */
export function ask(message, properties, { name = 'form', optional = [] } = {}) {
  const required = Object.keys(properties).filter((field) => !optional.includes(field));
  const schema = JSON.stringify({ type: 'object', properties, required });
  const [answer] = requestInput([{ name, kind: { tag: 'form', val: { message, schema } } }]);
  if (answer.tag === 'refused') {
    throw new Error(`the client answered with error ${answer.val.code}: ${answer.val.message}`);
  }
  return answer.val.action === 'accept' ? JSON.parse(answer.val.content ?? '{}') : null;
}

/** Asks for a yes; everything else is `false`. */
export function confirm(message, { name = 'confirm' } = {}) {
  const form = ask(message, { yes: { type: 'boolean', title: 'Yes', default: false } }, { name });
  return form?.yes === true;
}

/** Asks several things at once, of every kind that there is: requests and answers as in wit/task.wit. */
export function requestInput(requests) {
  try {
    return task.requestInput(requests);
  } catch (error) {
    const why = error.payload ?? error;
    if (why.tag === 'interrupted') throw new Interrupted('the caller wants the work to end');
    if (why.tag === 'unsupported') {
      throw new RpcError(CODE.missingCapability, `the client cannot answer this question: ${why.val}`);
    }
    throw new RpcError(CODE.internal, `the plugin's question is not valid: ${why.val ?? why}`);
  }
}

function say(level) {
  return (message, data) => log.log(level, undefined, JSON.stringify(data === undefined ? message : { message, ...data }));
}

/**
 * `logger.info('...')`, with an object of further data if you like. It goes to the operator's log, and to the client if it
 * asked for that level. `console.log` goes to the operator alone.
 */
export const logger = {
  debug: say('debug'),
  info: say('info'),
  notice: say('notice'),
  warning: say('warning'),
  error: say('error'),
};

function toResult(value) {
  if (value instanceof Result) return value.raw;
  if (value === undefined) return new Result({}).raw;
  if (typeof value === 'string') return new Result({ content: [text(value)] }).raw;
  return new Result({ content: [text(JSON.stringify(value))], structured: value }).raw;
}

/** What the caller gets for an error: a result that says so, a JSON-RPC error (thrown), or nothing after a cancellation. */
function toFailure(error) {
  if (error instanceof Interrupted) throw wire(new RpcError(CODE.internal, error.message));
  if (error instanceof RpcError) throw wire(error);
  // Where it happened is for the operator; a model has no use for it.
  console.error(error?.stack ? `${error}\n${error.stack}` : String(error));
  return new Result({ content: [text(error?.message ?? String(error))], isError: true }).raw;
}

function complete(result) {
  try {
    task.complete(result);
  } catch (error) {
    const why = error.payload ?? error;
    throw wire(new RpcError(CODE.internal, `the result was not taken: ${why.val ?? why.tag ?? why}`));
  }
}

/** An error as it crosses to the host. */
const wire = ({ code, message, data }) => ({ code, message, data: json(data) });

const json = (value) => (value === undefined ? undefined : JSON.stringify(value));
