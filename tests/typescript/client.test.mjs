// The TypeScript client, with its package for tasks, against a running server. `all/typescript_client.rs` starts it.
//
// SERVER says where the server is: {"url": "..."}, or {"command": "...", "args": [...]} to be started over stdio.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { createTaskSessionFromClient } from '@modelcontextprotocol/ext-tasks/client';

const SERVER = JSON.parse(process.env.SERVER);
const VERSION = '2026-07-28';
const INFO = { name: 'longshore-tests', version: '1' };
const ASKS = { elicitation: { form: {} } };
const TASKS = { ...ASKS, extensions: { 'io.modelcontextprotocol/tasks': {} } };

/// A connected client that speaks the modern wire, or fails. It is closed with its test: over stdio there is one at a time.
async function connect(t, capabilities) {
    const client = new Client(INFO, { capabilities, versionNegotiation: { mode: { pin: VERSION } } });
    await client.connect(SERVER.url ? new StreamableHTTPClientTransport(new URL(SERVER.url)) : new StdioClientTransport({ ...SERVER, stderr: 'ignore' }));
    t.after(() => client.close());
    return client;
}

/// Sends requests beside the client's own, as the package for tasks wants its host to.
function rawDispatch({ transport }) {
    const waiting = new Map();
    const ofClient = transport.onmessage;
    transport.onmessage = (message, extra) => {
        const settle = waiting.get(message.id);
        waiting.delete(message.id);
        return settle ? settle(message) : ofClient(message, extra);
    };
    let count = 0;
    return async (request, { signal } = {}) => {
        const id = `raw-${count++}`;
        const { promise, resolve } = Promise.withResolvers();
        waiting.set(id, resolve);
        await transport.send({ jsonrpc: '2.0', id, ...request }, { requestSignal: signal });
        const { result, error } = await promise;
        return error ? { kind: 'error', error } : { kind: 'result', result };
    };
}

/// A client that follows tasks, and answers their questions like this.
async function tasks(t, answer) {
    const client = await connect(t, TASKS);
    const session = createTaskSessionFromClient(client, {
        endpointId: 'tests',
        rawDispatch: rawDispatch(client),
        v2RequestFraming: { protocolVersion: VERSION, clientInfo: INFO, clientCapabilities: TASKS },
        onInputRequest: answer,
    });
    return { client, session };
}

const text = (result) => result.content[0].text;
const number = (action) => async (asked) => {
    assert.equal(asked.kind, 'elicitation');
    assert.equal(asked.params.requestedSchema.properties.number.type, 'number');
    return action === 'accept' ? { action, content: { number: 7 } } : { action };
};

test('finds out what is served', async (t) => {
    const client = await connect(t, ASKS);
    assert.equal(client.getProtocolEra(), 'modern');
    const { tools } = await client.listTools();
    assert.ok(tools.some((tool) => tool.name === 'echo'));
    assert.deepEqual(client.getServerCapabilities().extensions, { 'io.modelcontextprotocol/tasks': {} });
});

test('calls a tool', async (t) => {
    const client = await connect(t, {});
    const reports = [];
    const echo = await client.callTool({ name: 'echo', arguments: { text: 'hello' } });
    assert.equal(text(echo), 'hello');
    const stats = await client.callTool({ name: 'stats', arguments: { text: 'two words' } });
    assert.deepEqual(stats.structuredContent, { characters: 9, words: 2 });
    const steps = { name: 'progress', arguments: { steps: [1, 2], total: 2, ms: 60 } };
    await client.callTool(steps, { onprogress: ({ progress }) => reports.push(progress) });
    assert.deepEqual(reports, [1, 2]);
});

test('gets prompts, resources and suggestions', async (t) => {
    const client = await connect(t, {});
    const { prompts } = await client.listPrompts();
    assert.ok(prompts.some((prompt) => prompt.name === 'greet'));
    const { messages } = await client.getPrompt({ name: 'greet', arguments: { name: 'Ada' } });
    assert.equal(messages[0].content.text, 'Greet Ada.');
    const { resources } = await client.listResources();
    assert.ok(resources.some((resource) => resource.uri === 'fixture://plain'));
    const { resourceTemplates } = await client.listResourceTemplates();
    assert.ok(resourceTemplates.some((template) => template.uriTemplate === 'fixture://seen/{ms}'));
    const { contents } = await client.readResource({ uri: 'fixture://plain' });
    assert.equal(contents[0].text, 'a plain text');
    const ref = { type: 'ref/prompt', name: 'greet' };
    const { completion } = await client.complete({ ref, argument: { name: 'name', value: 'A' } });
    assert.equal(completion.values.length, 100);
});

for (const [action, said] of [['accept', 'the number is 7'], ['decline', 'declined']]) {
    test(`answers a question of a plain call: ${action}`, async (t) => {
        const client = await connect(t, ASKS);
        client.setRequestHandler('elicitation/create', ({ params }) => number(action)({ kind: 'elicitation', params }));
        assert.equal(text(await client.callTool({ name: 'ask_one', arguments: {} })), said);
    });

    test(`answers a question of a task: ${action}`, async (t) => {
        const { session } = await tasks(t, number(action));
        const execution = await session.callTool('ask_one', {});
        assert.equal(execution.kind, 'task');
        const { outcome } = await execution.settle();
        assert.equal(text(outcome.result), said);
    });
}

test('follows a task to its end', async (t) => {
    const { session } = await tasks(t);
    const execution = await session.callTool('sleep_required', { ms: 700 });
    assert.equal(execution.kind, 'task');
    const seen = new Set();
    const onEvent = (event) => seen.add(event.task?.status ?? event.outcome.task?.status);
    const { outcome } = await execution.settle({ onEvent });
    assert.equal(text(outcome.result), 'slept 700 ms');
    assert.deepEqual([...seen], ['working', 'completed']);
});

test('takes a result at once from a tool that makes no tasks', async (t) => {
    const { session } = await tasks(t);
    const execution = await session.callTool('sleep_forbidden', { ms: 1 });
    assert.equal(execution.kind, 'immediate');
    assert.equal(text((await execution.settle()).outcome.result), 'slept 1 ms');
});

test('finds its task again from another client', async (t) => {
    const { client, session } = await tasks(t);
    const execution = await session.callTool('ask_one', {});
    const reference = execution.serializeReference();
    await execution.detach();
    await client.close();
    const other = await tasks(t, number('accept'));
    const { outcome } = await (await other.session.resumeTask(reference)).settle();
    assert.equal(text(outcome.result), 'the number is 7');
});

test('cancels a task', async (t) => {
    const { session } = await tasks(t);
    const execution = await session.callTool('sleep_required', { ms: 60_000 });
    await execution.cancel();
    const { outcome } = await execution.settle();
    assert.equal(outcome.status, 'cancelled');
});

test('is told how a task failed', async (t) => {
    const { session } = await tasks(t);
    const { outcome } = await (await session.callTool('protocol_error_job', {})).settle();
    assert.equal(outcome.status, 'failed');
    assert.equal(typeof outcome.error.code, 'number');
    const failing = await session.callTool('failing_job', {});
    const settled = await failing.settle();
    assert.equal(settled.outcome.status, 'completed');
    assert.equal(settled.outcome.result.isError, true);
});

test('is told of bad arguments', async (t) => {
    const { client, session } = await tasks(t);
    const result = await client.callTool({ name: 'stats', arguments: { text: 7 } });
    assert.equal(result.isError, true);
    assert.match(text(result), /text/);
    const execution = await session.callTool('sleep_required', { ms: 'soon' });
    assert.equal(execution.kind, 'immediate');
    assert.equal((await execution.settle()).outcome.result.isError, true);
});

test('is told of unknown names', async (t) => {
    const { client, session } = await tasks(t);
    const unknown = (call) => assert.rejects(call, { code: -32602 });
    await unknown(client.callTool({ name: 'no_such', arguments: {} }));
    await unknown(client.getPrompt({ name: 'no_such' }));
    await unknown(client.readResource({ uri: 'fixture://no/such' }));
    await unknown(session.callTool('no_such', {}));
    await unknown(session.task('0123456789abcdef0123456789abcdef01234567').snapshot());
});

test('listens to a task', async (t) => {
    const told = { input_required: Promise.withResolvers(), completed: Promise.withResolvers() };
    const { client, session } = await tasks(t, async (asked) => {
        await told.input_required.promise;
        return number('accept')(asked);
    });
    client.setNotificationHandler('notifications/tasks', { params: ANY }, (task) => told[task.status]?.resolve(task));
    const execution = await session.callTool('ask_one', {});
    const { taskId } = execution.handle;
    const subscription = await client.listen({ taskIds: [taskId] });
    const asking = await told.input_required.promise;
    assert.deepEqual([asking.taskId, Object.keys(asking.inputRequests)], [taskId, ['number']]);
    const last = await told.completed.promise;
    assert.equal(text(last.result), 'the number is 7');
    await subscription.close();
    assert.equal(await subscription.closed, 'local');
});

/// Takes any parameters.
const ANY = { '~standard': { version: 1, vendor: 'tests', validate: (value) => ({ value }) } };
