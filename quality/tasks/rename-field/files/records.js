function load(text) {
  return JSON.parse(text).map((record) => ({ usr: record.usr, age: record.age }));
}

function save(records) {
  return JSON.stringify(records.map(({ usr, age }) => ({ usr, age })));
}

module.exports = { load, save };
