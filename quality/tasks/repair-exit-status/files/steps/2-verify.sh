echo "verified"
