function load(text) {
  return JSON.parse(text).map((record) => ({ userName: record.userName ?? record.usr, age: record.age }));
}

function save(records) {
  return JSON.stringify(records.map(({ userName, age }) => ({ userName, age })));
}

module.exports = { load, save };
