// A timer: tools that reckon with dates, wait, and ask.

import { ask, plugin, progress, sleep, stopIfCancelled } from './longshore.js';

const STEPS = 20;
const DAY_MS = 24 * 60 * 60 * 1000;

const daysBetween = {
  name: 'days_between',
  title: 'Days between two dates',
  description: 'Counts the days from one date to another; negative if the second is earlier.',
  task: 'forbidden',
  hints: { readOnly: true },
  input: {
    properties: {
      from: { type: 'string', format: 'date', description: 'As in 2026-01-31.' },
      to: { type: 'string', format: 'date', description: 'As in 2026-12-24.' },
    },
    required: ['from', 'to'],
  },
  output: {
    type: 'object',
    properties: { days: { type: 'integer' }, weekday: { type: 'string', description: 'Of the second date.' } },
    required: ['days', 'weekday'],
  },
  run({ from, to }) {
    const [start, end] = [day(from), day(to)];
    const weekday = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday'][end.getUTCDay()];
    return { days: Math.round((end - start) / DAY_MS), weekday };
  },
};

const timer = {
  name: 'timer',
  title: 'Timer',
  description: 'Waits for a while and then says that the time is up. Tells how much is left meanwhile.',
  hints: { readOnly: true },
  input: {
    properties: {
      seconds: { type: 'number', exclusiveMinimum: 0, maximum: 1500 },
      label: { type: 'string', description: 'What the time is for.', maxLength: 100, default: 'The timer' },
    },
    required: ['seconds'],
  },
  async run({ seconds, label = 'The timer' }) {
    await countDown(label, seconds);
    return `${label}: ${seconds} seconds are up.`;
  },
};

const focus = {
  name: 'focus',
  title: 'Focus on one thing',
  description: 'Asks the user what to work on, leaves them alone for some minutes, and asks how it went.',
  hints: { readOnly: true },
  input: {
    properties: { minutes: { type: 'number', exclusiveMinimum: 0, maximum: 25, default: 25 } },
  },
  output: {
    type: 'object',
    properties: {
      goal: { type: 'string' },
      began: { type: 'string', format: 'date-time' },
      ended: { type: 'string', format: 'date-time' },
      done: { type: 'boolean' },
      note: { type: 'string' },
    },
    required: ['goal', 'began', 'ended', 'done'],
  },
  async run({ minutes = 25 }) {
    const plan = ask('What will you work on?', { goal: { type: 'string', title: 'Goal', minLength: 1 } }, { name: 'plan' });
    if (!plan) throw new Error('Nothing was started: the user named no goal.');
    const began = now();
    await countDown(plan.goal, minutes * 60);
    const ended = now();

    // While a question is open this plugin need not be in memory. It may be started again for the answer, an hour later or
    // after a restart of the server: it is then told the same times and answers as before, and arrives here again at once.
    const review = ask(
      `Time is up: it was ${began} when you began, and is ${ended}. How did "${plan.goal}" go?`,
      {
        done: { type: 'boolean', title: 'Done' },
        note: { type: 'string', title: 'Note', description: 'For your log', maxLength: 500 },
      },
      { name: 'review', optional: ['note'] },
    );
    return { goal: plan.goal, began, ended, done: false, ...review };
  },
};

const now = () => new Date().toISOString();

/** Waits in steps, so that it can say how far it has got. */
async function countDown(label, seconds) {
  for (let step = 1; step <= STEPS; step++) {
    await sleep((seconds * 1000) / STEPS);
    stopIfCancelled();
    progress(step, STEPS, `${label}: ${Math.round(seconds * (1 - step / STEPS))} seconds left`);
  }
}

function day(text) {
  const date = new Date(`${text}T00:00:00Z`);
  if (Number.isNaN(date.getTime())) throw new Error(`${text} is no date; write it as in 2026-12-24`);
  return date;
}

export const tools = plugin([daysBetween, timer, focus]);
