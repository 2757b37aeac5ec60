// The driver of kafkajs: by default it awaits no send; with the settings "awaited" it awaits each send before the next.
// tests/clients/libraries.py explains the lines of the output.
const { Kafka, logLevel } = require("kafkajs");

const spec = JSON.parse(process.argv[2]);
const VALUE_BYTES = 1000;
const TUNED = { idempotent: true, maxInFlightRequests: 1, retry: { maxRetryTime: 2000, retries: 1_000_000 } };

const kafka = new Kafka({
  clientId: spec.User,
  brokers: [spec.Bootstrap],
  sasl: { mechanism: "plain", username: spec.User, password: spec.User },
  logLevel: logLevel.NOTHING,
});

let outstanding = 0;
let ended = false;
process.stdin.on("end", () => (ended = true)).resume();

const print = (event) => console.log(JSON.stringify({ ...event, ms: Date.now() }));
const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

async function send(producer, id) {
  const value = String(id).padStart(10, "0").padEnd(VALUE_BYTES, "x");
  outstanding++;
  try {
    await producer.send({ topic: spec.Topic, acks: -1, messages: [{ value }] });
    print({ event: "acked", id });
  } catch (error) {
    print({ event: "failed", id, error: `${error.name}: ${error.message}` });
  }
  outstanding--;
}

async function run() {
  const producer = kafka.producer(spec.Settings === "tuned" ? TUNED : {});
  await producer.connect();
  let sent = 0, next = Date.now();
  while (!ended) {
    if (Date.now() < next || outstanding >= spec.Outstanding) {
      await sleep(1);
      continue;
    }
    const before = Date.now();
    const delivery = send(producer, sent++);
    if (spec.Settings !== "default") await delivery;
    next = Math.max(next + 1000 / spec.Rate, before - 50);
  }
  for (const end = Date.now() + 30_000; outstanding > 0 && Date.now() < end; ) await sleep(10);
  print({ event: "done", sent });
  process.exit(0);
}

async function create() {
  const admin = kafka.admin();
  await admin.connect();
  try {
    await admin.createTopics({ topics: [{ topic: spec.Topic, numPartitions: 1, replicationFactor: 1 }] });
    print({ event: "created" });
  } catch (error) {
    const causes = (error.errors || []).map((cause) => cause.message);
    print({ event: "refused", error: [error.message, ...causes].join(" ") });
  }
  process.exit(0);
}

print({ event: "started", version: require("kafkajs/package.json").version });
(spec.Create ? create() : run()).catch((error) => {
  console.error(error);
  process.exit(1);
});
