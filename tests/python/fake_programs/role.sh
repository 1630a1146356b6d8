#!/bin/sh
# usage: role.sh NAME FLAGS: a program that ends when the fake agent says that the job is over. CHIEF_FAILS: the chief fails
# and says that.
name=$1
shift
for flag; do
  case "$flag" in
    --model_dir=*) model_dir=${flag#--model_dir=} ;;
  esac
done
trap 'echo "I 2026-01-01T00:00:00.000Z $name stopped"; exit 143' TERM
echo "I 2026-01-01T00:00:00.000Z $name started $* $(cat "$KEELSON_JOB_TOKEN_FILE" | wc -c) $TF_CONFIG"
if [ "$name" = chief ] && [ -n "$CHIEF_FAILS" ]; then
  echo "E 2026-01-01T00:00:00.000Z chief-0 $CHIEF_FAILS"
  echo "I 2026-01-01T00:00:00.000Z chief-0 says more"
  exit 2
fi
while [ ! -e "$model_dir/over" ]; do
  sleep 0.05
done
