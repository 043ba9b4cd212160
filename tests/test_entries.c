/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Settings in files of other programs: the entries read from each syntax, and positions of errors.
 */
#include "base/error.h"
#include "base/settings/settings_arguments.h"
#include "base/settings/settings_file.h"
#include "run_tests.h"

#include <string.h>

/* Entries as lines: "path=value", lists with spaces, flags "path", null "path:". Caller frees. */
static char *
flatten(const LhSettingsFile *e)
{
    GString *out = g_string_new(NULL);

    for (guint i = 0; i < e->entries->len; i++) {
        const LhSettingsEntry *entry = g_ptr_array_index(e->entries, i);
        g_autofree char *text = lh_settings_entry_text(entry);

        if (entry->kind == LH_SETTINGS_FLAG)
            g_string_append_printf(out, "%s\n", entry->path);
        else if (entry->kind == LH_SETTINGS_NONE)
            g_string_append_printf(out, "%s:\n", entry->path);
        else
            g_string_append_printf(out, "%s=%s\n", entry->path, text);
        if (entry->open_line != 0)
            g_string_append_printf(out, "  open: %u:%u %u %s\n", entry->line, entry->column,
                                   entry->open_line, entry->open_variable);
    }
    return g_string_free(out, FALSE);
}

static void
check_read(LhSettingsFileReader *reader, const char *text, const char *expected)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(LhSettingsFile) e = reader("f", text, strlen(text), &error);
    g_autofree char *found = NULL;

    ck_assert_msg(e != NULL, "%s in: %s", error != NULL ? error->message : "", text);
    found = flatten(e);
    ck_assert_str_eq(found, expected);
}

static void
check_refused(LhSettingsFileReader *reader, const char *text, const char *message)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(LhSettingsFile) e = reader("f", text, strlen(text), &error);

    ck_assert_msg(e == NULL && error != NULL, "not refused: %s", text);
    ck_assert(g_error_matches(error, LH_ERROR, LH_ERROR_INPUT));
    ck_assert_msg(g_str_has_prefix(error->message, message), "%s, expected %s", error->message,
                  message);
}

START_TEST(toml_is_read)
{
    static const struct {
        const char *text, *expected;
    } rows[] = {
        { "", "" },
        { "# c\n a = 1 # c\r\n\n'b c' = \"x\"", "a=1\nb c=x\n" },
        { "[t]\na = true\n[t.u]\nb=-2\n[v]\nc=1_000", "t.a=true\nt.u.b=-2\nv.c=1000\n" },
        { "a.b.c = 0x1F\na.b.d = 0o17\na.e = 0b11", "a.b.c=31\na.b.d=15\na.e=3\n" },
        { "a = 3e-4\nb = 6.5\nc = inf\nd = -nan\ne = +7", "a=3e-4\nb=6.5\nc=inf\nd=-nan\ne=7\n" },
        { "a = 1979-05-27\nb = 07:32:00\nc = 1979-05-27 07:32:00Z",
          "a=1979-05-27\nb=07:32:00\nc=1979-05-27 07:32:00Z\n" },
        { "a = [1, 2,\n # c\n 'x', ]\nb = []", "a=1 2 x\nb=\n" },
        { "a = [[1], [2, 3]]", "a=\na[0]=1\na[1]=2 3\n" },
        { "a = { b = 1, c.d = 'x' }\ne = {}", "a.b=1\na.c.d=x\n" },
        { "[[x]]\na=1\n[[x]]\na=2\n[x.y]\nb=3", "x[0].a=1\nx[1].a=2\nx[1].y.b=3\n" },
        { "a = \"\\t\\u00e4\\\"\"\nb = '\\t'", "a=\t\xc3\xa4\"\nb=\\t\n" },
        { "a = \"\"\"\nx\\\n   y\"\"\"\"\nb = '''\n'q'\n'''", "a=xy\"\nb='q'\n\n" },
        { "[a.b]\nc=1\n[a]\nd=2", "a.b.c=1\na.d=2\n" },
        { "[a.b.c]\nd=1\n[a]\nb.e=2", "a.b.c.d=1\na.b.e=2\n" },
        { "\xef\xbb\xbf"
          "a = 1",
          "a=1\n" },
        { "'a.b' = 1\na.b = 2\n\"\" = 3", "\"a.b\"=1\na.b=2\n\"\"=3\n" },
    };

    for (guint i = 0; i < G_N_ELEMENTS(rows); i++)
        check_read(lh_settings_toml, rows[i].text, rows[i].expected);
}
END_TEST

START_TEST(toml_says_where_it_is_wrong)
{
    static const struct {
        const char *text, *message;
    } rows[] = {
        { "a = 1\na = 2", "f:2:5: error: \"a\" is set twice" },
        { "[a]\n[a]", "f:2:4: error: \"a\" is set twice" },
        { "a.b = 1\n[a]", "f:2:4: error: \"a\" is set twice" },
        { "a = 1\n[a.b]", "f:2:4: error: \"a\" is complete" },
        { "a = {b=1}\na.c = 2", "f:2:3: error: \"a\" is complete" },
        { "[a]\nb.c=1\n[a.b]\nd=2", "f:3:6: error: \"a.b\" is set twice" },
        { "[a.b]\nc=1\n[a]\nb.d=2", "f:4:3: error: \"a.b\" is complete" },
        { "a = [1]\n[[a]]", "f:2:6: error: \"a\" is set twice" },
        { "a = 1 b = 2", "f:1:7: error: found \"b\"; the line should end here" },
        { "a = 01", "f:1:5: error: \"01\" begins with a zero" },
        { "a = 1__0", "f:1:5: error: found \"1__0\"" },
        { "a = 1.", "f:1:5: error: found \"1.\"" },
        { "a = bare", "f:1:5: error: found \"bare\"" },
        { "a = $X", "f:1:5: error: found \"$\"" },
        { "a =", "f:1:4: error: found the end of the file; allowed: text in quotes" },
        { "a = \"x\nb = 1", "f:1:7: error: found the end of the line; the closing quote" },
        { "a = \"\\q\"", "f:1:7: error: found \"q\"; no such escape" },
        { "a = \"\\ud800\"", "f:1:12: error: not the number of a character" },
        { "a = '''x", "f:1:9: error: the three closing quotes of the text are missing" },
        { "a = [1 2]", "f:1:8: error: found \"2\"; a list goes on" },
        { "a = {b=1,}", "f:1:10: error: found \"}\"; expected a key" },
        { "a = {b=1\n}", "f:1:9: error: found the end of the line; a table in a line" },
        { "[a\nb=1", "f:1:3: error: found the end of the line; the header ends" },
        { "= 1", "f:1:1: error: found \"=\"; expected a key" },
        { "a", "f:1:2: error: found the end of the file; a key is followed by \"=\"" },
        { "\xc3\xa4 = 1", "f:1:1: error: found \"\xc3\xa4\"; expected a key" },
        { "a = 0_1", "f:1:5: error: \"0_1\" begins with a zero" },
        { "a = 1.e5", "f:1:5: error: found \"1.e5\"" },
        { "a = 9223372036854775808", "f:1:5: error: \"9223372036854775808\" does not fit" },
        { "a = 2001-02-29", "f:1:5: error: \"2001-02-29\" is not in the calendar" },
        { "a = 24:00:00", "f:1:5: error: \"24:00:00\" is not in the calendar or on the" },
        { "a = \"\\u0000\"", "f:1:12: error: a NUL" },
        { "a = 1\r", "f:1:6: error: found \"\\r\"; the line should end here" },
        { "# \x01", "f:1:3: error: found \"\\x01\"; allowed control characters" },
        { "a = 1\nb = \xff", "f:2:5: error: found the byte 0xff; allowed: UTF-8 without NUL" },
    };

    for (guint i = 0; i < G_N_ELEMENTS(rows); i++)
        check_refused(lh_settings_toml, rows[i].text, rows[i].message);
}
END_TEST

START_TEST(json_is_read)
{
    check_read(lh_settings_json, "{\"a\": {\"b\": 1, \"c\": null}, \"d\": [1, \"x\"], \"e\": true}",
               "a.b=1\na.c:\nd=1 x\ne=true\n");
    check_read(lh_settings_json, " {\"a\": [{\"b\": 1}, [2]]}", "a[0].b=1\na[1]=2\n");
    check_refused(lh_settings_json, "[1]", "f:1:1: error: settings are an object");
    check_refused(lh_settings_json, "{\"a\": 1,\n \"a\": 2}", "f:2:2: error");
    check_refused(lh_settings_json, "{\"a\": {\"b\": 1},\n \"a.b\": 2}",
                  "f:2:9: error: \"a.b\" is set twice");
}
END_TEST

/* Without libyaml YAML cannot be read. */
static bool
has_yaml(void)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(LhSettingsFile) e = lh_settings_yaml("f", "a: 1", 4, &error);

    ck_assert(e != NULL || g_error_matches(error, LH_ERROR, LH_ERROR_RUNTIME));
    return e != NULL;
}

START_TEST(yaml_is_read)
{
    if (!has_yaml())
        return;
    check_read(lh_settings_yaml, "", "");
    check_read(lh_settings_yaml, "# c\na: 1\nb:\n  c: 'yes'\n  d: yes\n  e: ~\n  f:\n",
               "a=1\nb.c=yes\nb.d=true\nb.e:\nb.f:\n");
    check_read(lh_settings_yaml, "a: [1, x, No]\nb:\n- c: 1\n- [2]\n",
               "a=1 x false\nb=\nb[0].c=1\nb[1]=2\n");
    check_read(lh_settings_yaml, "--- {a: {b: \"x y\"}}\n", "a.b=x y\n");
    check_refused(lh_settings_yaml, "a: 1\na: 2\n", "f:2:4: error: \"a\" is set twice");
    check_refused(lh_settings_yaml, "a: {b: 1}\na: {c: 2}\n", "f:2:4: error: \"a\" is set twice");
    check_refused(lh_settings_yaml, "a: &x 1\nb: *x\n", "f:2:4: error: anchors and aliases");
    check_refused(lh_settings_yaml, "a: !!python/object x\n", "f:1:4: error: tags");
    check_refused(lh_settings_yaml, "a: {<<: {b: 1}}\n", "f:1:5: error: merge keys");
    check_refused(lh_settings_yaml, "- a\n", "f:1:1: error: settings are a mapping");
    check_refused(lh_settings_yaml, "a: 1\n---\nb: 2\n", "f:2:1: error: a second document");
    check_refused(lh_settings_yaml, "a: [1\n", "f:2:1: error: ");
    check_refused(lh_settings_yaml, "a: \"x\\0y\"\n", "f:1:4: error: a NUL");
}
END_TEST

START_TEST(arguments_are_read)
{
    static const struct {
        const char *text, *expected;
    } rows[] = {
        { "", "" },
        { "--a 1 --b --c=2 -d x", "a=1\nb\nc=2\nd=x\n" },
        { "--a 8 2 \\\n  3\n--b", "a=8 2 3\nb\n" },
        { "--a -1 --b '-c' --d \"--e\"", "a=-1\nb\nc\nd\ne\n" },
        { "N=4\nexport M=\"a b\"\n--a $N --b ${M} --c ${K:-7} --d $K --e '$N'",
          "a=4\nb=a b\nc=7\nd=$K\ne=$N\n" },
        { "X=(\n --a 1 # --b 2\n --c\n)\nrun \"${X[@]}\" --d 3 && next --e 5",
          "a=1\nc\nd=3\ne=5\n" },
        { "--a 1\nnot a value", "a=1\n" },
        { "--a x=1 --b", "a=x=1\nb\n" },
        { "a --b --a 1 --a 2", "b\na=1\na=2\n" },
        { "--a \"x\\\"y\" --b x\\ y", "a=x\"y\nb=x y\n" },
    };

    for (guint i = 0; i < G_N_ELEMENTS(rows); i++)
        check_read(lh_settings_arguments, rows[i].text, rows[i].expected);
    check_refused(lh_settings_arguments, "--a 1\n --b 'x\n", "f:2:6: error: the quote has no end");
}
END_TEST

/* Shell scripts, evaluated as far as their text determines. */
START_TEST(scripts_are_followed)
{
    static const struct {
        const char *text, *expected;
    } rows[] = {
        { "A=\"--a 1 --b\"\nB='--c 2'\nrun $A ${B} --d", "a=1\nb\nc=2\nd\n" },
        { "A=\"--a 1\"\nA+=\" --b 2\"\nrun $A", "a=1\nb=2\n" },
        { "A=(--a 1)\nA+=(--b 2)\nA+=($B)\nC=\"--c 3\"\nA+=($C)\nrun ${A[@]}",
          "a=1\nb=2 $B\nc=3\n" },
        { "A=(--a 1); OLD=(--a 2 --z); run \"${A[@]}\"", "a=1\n" },
        { "S=m\ncase \"$S\" in\n s) N=1 ;;\n m|l) N=2 M=3;;\n *) exit 1;;\nesac\nrun --n $N --m $M",
          "n=2\nm=3\n" },
        { "S=2\nif [ $S = 1 ]; then N=1\nelif [[ $S -gt 1 && $S != 3 ]]; then\n N=2\nelse N=3\n"
          "fi\nrun --n $N",
          "n=2\n" },
        { "if [ $N -lt 1 ]; then :; fi; [ -d out ] || mkdir -p out\n[ -z \"$X\" ] && echo no\n"
          "run --a 1",
          "a=1\n" },
        { "N=${1:-8}\nM=$((N * 2 + 1))\nrun --n $N --m $M --k $((N/3))", "n=8\nm=17\nk=2\n" },
        { "f() {\n run --n $1 $A\n}\nA=--b\nf 7", "n=7\nb\n" },
        { "cat <<END >f\n--a 1\nEND\nrun --b 2 2>&1 | tee log --c", "b=2\n" },
        { "C=\"run --a 1\"\neval $C\nsrun --x bash -c \"$C --b\"", "a=1\nx\na=1\nb\n" },
        { "while [ $# -gt 0 ]; do case $1 in --a) A=$2;; esac; shift; done\nrun --a ${A:-5}",
          "a=5\n" },
        { "P=/x/y.sh\nrun --a ${P%.sh} --b ${P##*/} --c ${#P}", "a=/x/y\nb=y.sh\nc=7\n" },
        { "X=1 run --a 1 || exit 1\nexit 0\nrun --b 2", "a=1\n" },
        { "A=(--f ([0]*1+[1]*26) --g)\nrun ${A[@]}", "f=([0]*1+[1]*26)\ng\n" },
        { "run model.a=1 +t.b=x y=2", "model.a=1\nt.b=x\n" },
        { "run f.yaml a=1 b=x\nrun c=2", "a=1\nb=x\n" },
        /* Arithmetic, and tests on words. */
        { "N=4\nrun --a $((7 - 3 % 2)) --b $((-(1 + 2) * 2)) --c $((!0 + !5)) --d $((${N} << 0))",
          "a=6\nb=-6\nc=1\nd=$((${N} << 0))\n" },
        { "run --a $((1 < 2)) --b $((2 <= 1)) --c $((2 > 1)) --d $((1 >= 2)) --e $((1 == 1)) "
          "--f $((1 != 1)) --g $((1 && 0)) --h $((0 || 3))",
          "a=1\nb=0\nc=1\nd=0\ne=1\nf=0\ng=0\nh=1\n" },
        { "A=x\n[ -n \"$A\" ] && run --a 1\n[ -z \"$A\" ] && run --b 1\n[ ! -z $A ] && run --c 1",
          "a=1\nc=1\n" },
        { "A=3\n[[ ( $A -ge 3 || $A -lt 0 ) && $A != 4 ]] && run --a 1\n[ $A -eq 3 -a $A -ne 3 ] "
          "|| run --b 1\n[ $A ] && run --c 1",
          "a=1\nb=1\nc=1\n" },
    };

    for (guint i = 0; i < G_N_ELEMENTS(rows); i++)
        check_read(lh_settings_arguments, rows[i].text, rows[i].expected);
}
END_TEST

START_TEST(what_a_script_leaves_open_is_told)
{
    static const struct {
        const char *text, *expected;
    } rows[] = {
        { "if [ $S = 1 ]; then N=1; else N=2; fi\nrun --n $N", "n=$N\n  open: 2:5 1 S\n" },
        { "[ -f x ] && run --a 1", "a=1\n  open: 1:17 1 \n" },
        { "case $S in\na) O=--a;;\nesac\nrun $O --b", "a\n  open: 2:6 1 S\nb\n" },
        { "for N in 1 2; do run --n $N; done", "n=1\n  open: 1:22 1 N\nn=2\n  open: 1:22 1 N\n" },
        /* The common beginning of a variable after both branches is certain. */
        { "A=\"--a 1\"\n[ -n \"$W\" ] && A=\"$A --w x\"\nrun $A --b",
          "a=1\nw=x\n  open: 1:3 2 W\nb\n" },
        { "A=(--a 1)\nif [ $W ]; then\nA+=(--w x)\nelse\nA+=(--v)\nfi\nrun ${A[@]} --b",
          "a=1\nw=x\n  open: 3:5 2 W\nv\n  open: 5:5 2 W\nb\n" },
        { "A=\"--a 1\"\nif [ $W ]; then A=\"--a 2\"; fi\nrun $A", "a=$A\n  open: 2:19 2 W\n" },
        { "R=\nif [ -d /opt/x ]; then R=--r=1; fi\nrun $R --a", "r=1\n  open: 2:26 2 R\na\n" },
        { "[ $X ] && S=2\nrun $S y.py --a 1", "a=1\n" },
        { "A=\"--a 1\"\n[ $W ] && A=\"$A --w\"\nC=\"run $A\"\neval $C",
          "a=1\nw\n  open: 1:3 2 W\n" },
        { "[ $W ] && A=--w\nsrun bash -c \"run --a 1 $A --b\"", "a=1\nw\n  open: 1:13 1 W\nb\n" },
        { "[ $W ] && A=--w\nbash <<END\nrun $A --b\nEND", "w\n  open: 1:13 1 W\nb\n" },
        { "if [ $W ]; then N=2; fi\nC=\"run --a 1 --n $N\"\neval $C --b",
          "a=1\nn=$N\n  open: 3:1 1 W\nb\n" },
    };

    for (guint i = 0; i < G_N_ELEMENTS(rows); i++)
        check_read(lh_settings_arguments, rows[i].text, rows[i].expected);
    check_refused(lh_settings_arguments, "run ${A", "f:1:5: error: the \"${\" has no end");
    check_refused(lh_settings_arguments, "if true; then run", "f:1:1: error: \"if\" has no \"fi\"");
}
END_TEST

/* Scripts that a command reads or gets as an argument. */
START_TEST(scripts_within_a_script_are_followed)
{
    static const struct {
        const char *text, *expected;
    } rows[] = {
        { "N=3\nsbatch <<END\nrun --a $N --b \\$X\nEND\nrun --c", "a=3\nb=$X\nc\n" },
        { "N=3\nbash <<'END'\nN=4\nrun --a $N \"--b\"\nexit 1\nEND\nrun --c", "a=4\nb\nc\n" },
        { "cat <<-END | ssh h bash -s -- 1\n\trun --a\n\tEND\nrun --b", "a\nb\n" },
        { "bash <<< \"run --a\"", "a\n" },
        { "python t.py <<END\nrun --a\nEND\nrun --b", "b\n" },
        { "cat <<END > j.sh\nrun --a \\$1 --b $X\nEND\nsbatch --x j.sh 7", "x\na=7\nb=$X\n" },
        { "echo \"#!/bin/sh\" > j\necho \"run --a 1\" >> j\nchmod +x j\n./j", "a=1\n" },
        { "tee j.sh <<END\nrun --a\nEND\nsrun bash ./j.sh\n. j.sh", "a\na\n" },
        { "cat > j.sh <<END\nrun --a\nEND\n", "" },
        { "A=\"  --a 1 --b \"\nmpirun -x P bash e.sh x.py \"$A --c\"",
          "x=P bash e.sh x.py\na=1\nb\nc\n" },
        { "srun --x bash -x -c 'run --a $1' n 2\nbash -lc \"run --b\"", "x\na=2\nb\n" },
        { "sbatch --wrap=\"run --a 1\"\nsbatch --wrap 'run --b'", "a=1\nb\n" },
        { "ssh -q h \"cd /x && run --a\"", "q=h\na\n" },
        { "A=$(cat <<END\n--a 1\n--b\nEND\n)\nrun $A --c", "a=1\nb\nc\n" },
        { "read -r -d '' A <<END\n --a 1\n --b\nEND\nrun $A", "a=1\nb\n" },
        { "IFS=',' read -r A B <<< \"2,1\"\nread C D <<< '3 4 5'\nrun --a $A --b $B --c $C --d $D",
          "a=2\nb=1\nc=3\nd=4 5\n" },
        { "N=4\nrun --a $(expr 16 / $N) --b `expr $N \\* 2`", "a=4\nb=8\n" },
    };

    for (guint i = 0; i < G_N_ELEMENTS(rows); i++)
        check_read(lh_settings_arguments, rows[i].text, rows[i].expected);
    check_refused(lh_settings_arguments, "run\nbash <<'END'\nls\nrun ${A\nEND",
                  "f:4:5: error: the \"${\" has no end");
    check_refused(lh_settings_arguments, "cat > j <<END\n${A\nEND",
                  "f:2:1: error: the \"${\" has no end");
}
END_TEST

START_TEST(variables_are_given)
{
    static const char text[] =
        "S=1\nif [ $S = 1 ]; then N=1; else N=2; fi\nrun --n $N --m $1 --k ${11}";
    g_autoptr(GPtrArray) given = g_ptr_array_new();
    g_autoptr(GError) error = NULL;
    g_autoptr(LhSettingsFile) e = NULL;
    g_autofree char *found = NULL;

    g_ptr_array_add(given, (gpointer) "S=3");
    g_ptr_array_add(given, (gpointer) "1=x");
    g_ptr_array_add(given, (gpointer) "11=y");
    e = lh_settings_script("f", text, strlen(text), given, &error);
    ck_assert_msg(e != NULL, "%s", error != NULL ? error->message : "");
    found = flatten(e);
    ck_assert_str_eq(found, "n=2\nm=x\nk=y\n");
    g_ptr_array_add(given, (gpointer) "T=3");
    ck_assert_ptr_null(lh_settings_script("f", text, strlen(text), given, &error));
    ck_assert_str_eq(error->message, "--set: f has no variable T");
}
END_TEST

/* A variable that doubles its text thirty times must not exhaust memory. */
START_TEST(what_grows_is_refused)
{
    g_autoptr(GString) doubling = g_string_new("A0=xxxxxxxxxxxxxxxx\n");
    g_autoptr(GString) deep = g_string_new("a = ");
    g_autoptr(GString) many = g_string_new(NULL);
    g_autoptr(GString) open = g_string_new("A=--a\n");
    g_autoptr(GString) wide = g_string_new("A=");
    g_autofree char *big = g_strnfill(LH_SETTINGS_BYTES_MAX + 1, '#');

    for (int i = 1; i <= 30; i++)
        g_string_append_printf(doubling, "A%d=$A%d$A%d\n", i, i - 1, i - 1);
    for (int i = 0; i <= LH_SETTINGS_DEPTH_MAX; i++)
        g_string_append_c(deep, '[');
    for (int i = 0; i <= LH_SETTINGS_MAX; i++)
        g_string_append_printf(many, "k%d = 1\n", i);
    for (int i = 0; i < 60000; i++)
        g_string_append_c(wide, 'x');
    g_string_append(wide, "\np");
    for (int i = 0; i < 10; i++)
        g_string_append_printf(wide, "\n--a%d $A $A $A $A $A $A $A $A $A $A", i);
    check_refused(lh_settings_arguments, wide->str, "f:9:30: error: words up to here exceed 4 MiB");
    for (int i = 0; i < 40; i++)
        g_string_append_printf(open, "[ $Q%d ] && A=\"$A $A --x%d\"\n", i, i);
    g_string_append(open, "run $A");
    check_refused(lh_settings_arguments, open->str, "f:42:");
    check_refused(lh_settings_arguments, doubling->str,
                  "f:14:5: error: a word has more than 65536");
    check_refused(lh_settings_toml, deep->str, "f:1:37: error: lists and tables are nested");
    check_refused(lh_settings_toml, many->str, "f:10001:10: error: the file has more than 10000");
    check_refused(lh_settings_toml, big, "f:1:1: error: the file has more than 1048576 bytes");
}
END_TEST

LH_TEST_MAIN("entries", toml_is_read, toml_says_where_it_is_wrong, json_is_read, yaml_is_read,
             arguments_are_read, scripts_are_followed, what_a_script_leaves_open_is_told,
             scripts_within_a_script_are_followed, variables_are_given, what_grows_is_refused)
