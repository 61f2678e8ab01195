const pad = (number) => String(number).padStart(2, "0");

function isoDay(year, month, day) {
  return `${year}-${pad(month)}-${pad(day)}`;
}

module.exports = { isoDay };
