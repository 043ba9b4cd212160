/*
 * The explicit JSON form: every program survives writing and reading unchanged, hand-made ones can
 * use every kind of op, and whatever is broken is an error that says where.
 */
#include "base/error.h"
#include "base/rng.h"
#include "run_tests.h"
#include "sched/verify.h"

#include <string.h>

static LhProgramParams
make_params(uint32_t ranks, LhPass pass)
{
    return (LhProgramParams){
        .attention = {
            .batch = 1,
            .seq_length = 4 * (uint64_t)ranks,
            .heads = 4,
            .groups = 2,
            .head_dim = 8,
            .dtype = LH_DTYPE_BF16,
        },
        .ranks = ranks,
        .mask.causal = true,
        .pass = pass,
        .overlap = true,
    };
}

static char *
to_json(const LhProgram *program)
{
    g_autoptr(GError) error = NULL;
    GString *text = g_string_new(NULL);

    ck_assert_msg(lh_program_write(program, text, &error), "%s",
                  error == NULL ? "" : error->message);
    return g_string_free(text, FALSE);
}

static LhProgram *
parse(const char *text, GError **error)
{
    return lh_program_parse("t.json", text, strlen(text), error);
}

static LhProgram *
parse_ok(const char *text)
{
    g_autoptr(GError) error = NULL;
    LhProgram *program = parse(text, &error);

    ck_assert_msg(program != NULL, "%s", error == NULL ? "" : error->message);
    return program;
}

static void
check_round_trip(const LhSchedule *schedule, const LhProgramParams *params)
{
    g_autoptr(LhProgram) program = lh_program_new(schedule, params, NULL);
    g_autoptr(LhProgram) again = NULL;
    g_autoptr(LhVerdict) verdict = NULL;
    g_autofree char *first = NULL;
    g_autofree char *second = NULL;

    if (program == NULL)
        return; /* what a schedule refuses is another test's */
    first = to_json(program);
    again = parse_ok(first);
    second = to_json(again);
    ck_assert_str_eq(first, second);
    ck_assert_ptr_null(again->schedule);
    verdict = lh_verify(again);
    ck_assert_uint_eq(verdict->findings_total, 0);
}

START_TEST(explicit_round_trips)
{
    for (unsigned i = 0; lh_schedules[i] != NULL; i++) {
        for (uint32_t ranks = 1; ranks <= 5; ranks++) {
            for (int pass = LH_PASS_FWD; pass <= LH_PASS_BOTH; pass++) {
                LhProgramParams p = make_params(ranks, (LhPass)pass);

                check_round_trip(lh_schedules[i], &p);
                p.overlap = false;
                p.mask.causal = false;
                p.gradient_wire = LH_WIRE_FP32;
                check_round_trip(lh_schedules[i], &p);
                p.mask.causal = true;
                p.published_code = ranks % 2 == 0;
                check_round_trip(lh_schedules[i], &p);
            }
        }
    }
}
END_TEST

/* Two ranks; every kind of op, sizes and numbers that are nobody's default. */
static const char hand_made[] =
    "{\n"
    "  \"schema\": \"longhaul.schedule/1\",\n"
    "  \"params\": {\"ranks\": 2, \"batch\": 1, \"seq_length\": 8, \"heads\": 2, \"groups\": 1, "
    "\"head_dim\": 4,\n"
    "             \"dtype\": \"bf16\", \"causal\": true, \"pass\": \"fwd\"},\n"
    "  \"placement\": \"zigzag\",\n"
    "  \"closed_form\": {\"bytes_sent\": [1, 2], \"peak_bytes\": [3, 4]},\n"
    "  \"slots\": [\n"
    "    {\"name\": \"q\", \"kind\": \"q\", \"role\": \"input\", \"parts\": 2, \"part_bytes\": 32, "
    "\"element_bytes\": 2},\n"
    "    {\"name\": \"kv\", \"kind\": \"kv\", \"role\": \"input\", \"parts\": 2, \"part_bytes\": "
    "32, \"element_bytes\": 2},\n"
    "    {\"name\": \"all\", \"kind\": \"kv\", \"role\": \"temp\", \"parts\": 4, \"part_bytes\": "
    "32, \"element_bytes\": 2},\n"
    "    {\"name\": \"acc\", \"kind\": \"acc\", \"role\": \"temp\", \"part_bytes\": 96, "
    "\"element_bytes\": 2}\n"
    "  ],\n"
    "  \"streams\": [{\"name\": \"main\", \"kind\": \"compute\"}, {\"name\": \"net\", \"kind\": "
    "\"comm\"}],\n"
    "  \"ranks\": [\n"
    "    {\"ops\": [\n"
    "      {\"op\": \"alloc\", \"slot\": \"all\"},\n"
    "      {\"op\": \"collective\", \"stream\": \"net\", \"collective\": \"all-gather\",\n"
    "       \"group\": {\"base\": 0, \"stride\": 1, \"count\": 2},\n"
    "       \"send\": \"kv\", \"receive\": \"all\", \"wire_bytes\": 64},\n"
    "      {\"op\": \"sync\", \"step\": 1},\n"
    "      {\"op\": \"compute\", \"stream\": \"main\", \"step\": 1, \"after\": [1], \"kernel\": "
    "\"attention_fwd\",\n"
    "       \"regions\": [\"q[1]\", \"all[1..2]\", \"acc\"], \"mask\": \"causal\", \"shift\": -1, "
    "\"nq\": 2, \"nk\": 4,\n"
    "       \"first\": true, \"last\": true, \"scale\": 0.25, \"decay\": 0.5},\n"
    "      {\"op\": \"exchange\", \"stream\": \"net\", \"phase\": \"backward\", \"messages\": [\n"
    "        {\"to\": 1, \"tag\": 7, \"wire_bytes\": 5, \"regions\": [\"q\", \"kv[0]\"]},\n"
    "        {\"from\": 1, \"wire_bytes\": 6, \"regions\": [\"all[3]\"]}]},\n"
    "      {\"op\": \"free\", \"phase\": \"backward\", \"slot\": \"all\"}\n"
    "    ]},\n"
    "    {\"ops\": []}\n"
    "  ]\n"
    "}\n";

START_TEST(explicit_expresses_every_op)
{
    g_autoptr(LhProgram) program = parse_ok(hand_made);
    g_autofree char *first = to_json(program);
    g_autoptr(LhProgram) again = parse_ok(first);
    g_autofree char *second = to_json(again);
    LhOpBuffer buffer = { 0 };
    LhCursor cursor;

    ck_assert_str_eq(first, second);
    ck_assert_uint_eq(program->stated.bytes_sent[1], 2);
    ck_assert_uint_eq(program->stated.peak_bytes[0], 3);
    ck_assert_ptr_null(program->stated.flops);
    ck_assert(program->params.overlap);
    lh_cursor_init(&cursor, program, 0);
    ck_assert(lh_cursor_step(&cursor, &buffer));
    ck_assert_uint_eq(buffer.ops_count, 2);
    ck_assert_int_eq(buffer.ops[0].kind, LH_OP_ALLOC);
    ck_assert_int_eq(buffer.ops[1].collective.kind, LH_COLL_ALL_GATHER);
    ck_assert_uint_eq(buffer.ops[1].collective.group.outer_count, 1);
    ck_assert_uint_eq(buffer.ops[1].collective.receive[0].count, 4);
    ck_assert(lh_cursor_step(&cursor, &buffer));
    ck_assert_uint_eq(buffer.ops_count, 2);
    ck_assert_int_eq(buffer.ops[1].compute.kernel, LH_KERNEL_ID_attention_fwd);
    ck_assert_uint_eq(buffer.ops[1].compute.args.pairs, 1); /* rows 0 and 1, j <= i - 1 */
    ck_assert_uint_eq(buffer.ops[1].compute.regions[1].part, 1);
    ck_assert_uint_eq(buffer.ops[1].compute.regions[1].count, 2);
    ck_assert_double_eq(buffer.ops[1].compute.args.scale, 0.25);
    ck_assert(lh_cursor_step(&cursor, &buffer));
    ck_assert_uint_eq(buffer.ops_count, 2);
    ck_assert_uint_eq(buffer.parts_count, 2);
    ck_assert_uint_eq(buffer.parts[0].peer, 1);
    ck_assert_uint_eq(buffer.parts[0].tag, 7);
    ck_assert(buffer.parts[0].send);
    ck_assert(!buffer.parts[1].send);
    ck_assert_uint_eq(buffer.parts[1].regions[0].part, 3);
    ck_assert(!lh_cursor_step(&cursor, &buffer));
    lh_cursor_init(&cursor, program, 1);
    ck_assert(!lh_cursor_step(&cursor, &buffer));
    lh_op_buffer_clear(&buffer);
}
END_TEST

/* The hand-made program with one text replaced by another. */
static char *
replaced(const char *from, const char *to)
{
    const char *at = strstr(hand_made, from);
    GString *text = g_string_new_len(hand_made, at - hand_made);

    g_string_append(text, to);
    g_string_append(text, at + strlen(from));
    return g_string_free(text, FALSE);
}

START_TEST(explicit_words_its_errors)
{
    static const struct {
        const char *from, *to, *words;
    } cases[] = {
        { "schedule/1", "schedule/2",
          "t.json:2:13: error: this is read as \"longhaul.schedule/1\"" },
        { "\"seq_length\": 8", "\"seq_length\": 10", "nearest legal lengths: 8, 12" },
        { "\"ranks\": 2", "\"ranks\": 3", "t.json:3:" },
        { "\"kind\": \"q\"", "\"kind\": \"qq\"", "did you mean \"q\"" },
        { "\"name\": \"kv\"", "\"name\": \"q\"", "t.json:9:14: error: there is a slot q already" },
        { "\"name\": \"kv\"", "\"name\": \"k[v\"", "letters, digits" },
        { "\"name\": \"net\"", "\"name\": \"main\"", "there is a stream main already" },
        { "\"part_bytes\": 32", "\"part_bytes\": 0", "out of range" },
        { "[1, 2]", "[1, 2, 3]", "one number for each of 2 ranks; found 3" },
        { "\"slot\": \"all\"", "\"slot\": \"al\"",
          "no slot is called \"al\"; did you mean \"all\"?" },
        { "\"slot\": \"all\"", "\"stream\": \"net\"", "an op \"alloc\" takes no \"stream\"" },
        { "all-gather", "all-gathr", "did you mean \"all-gather\"" },
        { "\"base\": 0", "\"base\": 1", "members that are not ranks below 2" },
        { "\"after\": [1]", "\"after\": [3]", "op 3 can only come after earlier ops" },
        { "\"after\": [1]", "\"after\": [0,0,0,0,0,0,0,0,0]", "9 elements" },
        { "attention_fwd", "attention_fwt", "did you mean \"attention_fwd\"?" },
        { "\"q[1]\", ", "", "attention_fwd takes 3 operands; found 2" },
        { "q[1]", "q[2]", "slot q has the parts 0 to 1" },
        { "all[1..2]", "all[2..1]", "slot all has the parts 0 to 3" },
        { "all[1..2]", "all[1..", "a region is written" },
        { "\"shift\": -1", "\"shift\": 1", "out of range" },
        { "\"nq\": 2", "\"nq\": 2, \"pairs\": 4000000000000000000", "63 bits" },
        { "\"main\", \"step\"", "\"mian\", \"step\"", "did you mean \"main\"?" },
        { "\"to\": 1", "\"to\": 0", "another rank below 2; found 0" },
        { "\"to\": 1", "\"to\": 2", "another rank below 2; found 2" },
        { "\"to\": 1", "\"to\": 1, \"from\": 1", "one of \"to\" and \"from\"" },
        { "\"tag\": 7", "\"tag\": 70000", "out of range" },
        { "\"op\": \"sync\"", "\"op\": \"sync\", \"nq\": 1", "takes no arguments of a kernel" },
        { "    {\"ops\": []}\n", "    {\"ops\": []}, {\"ops\": []}\n",
          "there are 2 ranks, but the programs of 3" },
        { "\"streams\": [", "\"stream\": [], \"streams\": [", "unknown field \"stream\"" },
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *text = replaced(cases[i].from, cases[i].to);
        g_autoptr(GError) error = NULL;

        ck_assert_ptr_null(parse(text, &error));
        ck_assert(g_error_matches(error, LH_ERROR, LH_ERROR_INPUT));
        ck_assert_msg(g_str_has_prefix(error->message, "t.json:"), "%s", error->message);
        ck_assert_msg(strstr(error->message, cases[i].words) != NULL, "case %u: %s", i,
                      error->message);
    }
}
END_TEST

/* Nothing that is read may break what walks it: bytes changed at random, then whatever parses is
 * verified. */
START_TEST(explicit_survives_changed_bytes)
{
    const gsize length = strlen(hand_made);
    unsigned parsed = 0;

    for (uint64_t seed = 0; seed < 20000; seed++) {
        g_autofree char *text = g_strdup(hand_made);
        g_autoptr(LhProgram) program = NULL;

        for (uint64_t k = 0; k <= seed % 3; k++) {
            const gsize at = lh_rng_bits(seed, k, 0) % length;

            text[at] = "0123456789\"[]{},:.-eqkvacl"[lh_rng_bits(seed, k, 1) % 26];
        }
        program = parse(text, NULL);
        if (program == NULL)
            continue;
        parsed++;
        lh_verdict_free(lh_verify(program));
    }
    ck_assert_uint_gt(parsed, 100);
}
END_TEST

START_TEST(explicit_holds_a_program_to_its_word)
{
    const LhProgramParams params = make_params(3, LH_PASS_FWD);
    g_autoptr(LhProgram) program = lh_program_new(lh_schedule_find("ring", NULL), &params, NULL);
    g_autofree char *text = to_json(program);
    g_autoptr(LhProgram) again = parse_ok(text);
    g_autoptr(LhVerdict) verdict = NULL;

    again->stated.bytes_sent = g_new(uint64_t, 3);
    for (uint32_t rank = 0; rank < 3; rank++)
        again->stated.bytes_sent[rank] =
            program->schedule->closed.bytes_sent(&params, rank) + (rank == 1);
    verdict = lh_verify(again);
    ck_assert_uint_eq(verdict->findings_total, 1);
    ck_assert_int_eq(g_array_index(verdict->findings, LhFinding, 0).kind, LH_FINDING_CLOSED_FORM);
    ck_assert_uint_eq(g_array_index(verdict->findings, LhFinding, 0).rank, 1);
}
END_TEST

START_TEST(explicit_has_a_limit)
{
    LhProgramParams params = make_params(1024, LH_PASS_BOTH);
    g_autoptr(LhProgram) program = lh_program_new(lh_schedule_find("ring", NULL), &params, NULL);
    g_autoptr(GString) text = g_string_new(NULL);
    g_autoptr(GError) error = NULL;

    ck_assert(!lh_program_write(program, text, &error));
    ck_assert(g_error_matches(error, LH_ERROR, LH_ERROR_NO));
    ck_assert_uint_eq(text->len, 0);
}
END_TEST

LH_TEST_MAIN("explicit", explicit_round_trips, explicit_expresses_every_op,
             explicit_words_its_errors, explicit_survives_changed_bytes,
             explicit_holds_a_program_to_its_word, explicit_has_a_limit)
