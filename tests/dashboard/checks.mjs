// Counts what passes and what fails.

const counts = {passed: 0, failed: 0};

// Goes on after a failure, so that all of them show.
export async function check(name, test) {
  const begin = performance.now();
  try {
    await test();
    ++counts.passed;
    console.log(`ok      ${name} (${((performance.now() - begin) / 1000).toFixed(1)} s)`);
  } catch (error) {
    fail(name, error.message);
  }
}

export function fail(name, why) {
  ++counts.failed;
  console.log(`FAILED  ${name}: ${why}`);
}

export function anyFailed() {
  return counts.failed > 0;
}

export function summary() {
  return `${counts.passed} passed, ${counts.failed} failed`;
}

export async function json(url, options) {
  const response = await fetch(url, options);
  return {status: response.status, body: await response.json()};
}
