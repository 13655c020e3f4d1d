# expect: nothing
import subprocess


def load():
    subprocess.run("insert coin", shell=True, check=True)
    subprocess.run(["psql", "-c", "select 1"], check=True)
