const recent = [];
const samples = [];

function measure(path, act) {
  const start = Date.now();
  const result = act();
  samples.push({ path, time: Date.now() - start });
  recent.push(path);
  if (recent.length > 100) recent.shift();
  return result;
}

module.exports = { measure, recent };
