// 123456 cents are "1,234.56"; negative amounts begin with a minus sign.
function format(cents) {
  const sign = cents < 0 ? "-" : "";
  const whole = String(Math.floor(Math.abs(cents) / 100)).replace(/\B(?=(\d{3})+$)/g, ",");
  return `${sign}${whole}.${String(Math.abs(cents) % 100).padStart(2, "0")}`;
}

module.exports = { format };
