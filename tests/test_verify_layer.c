/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs of the layer outside attention: a small training step without attention is read, and
 * proven to read only what was written; each of a series of changes is detected or rejected.
 */
#include "program/explicit/explicit.h"
#include "program/explicit/explicit_read.h"
#include "run_tests.h"
#include "verifying.h"

#include <string.h>

#define HEAD                                                                                       \
    "{\"schema\": \"longhaul.schedule/1\",\n"                                                      \
    "\"params\": {\"ranks\": 1, \"batch\": 1, \"seq_length\": 8, \"heads\": 2, \"groups\": 2,\n"   \
    "\"head_dim\": 4, \"dtype\": \"fp32\", \"causal\": true, \"pass\": \"fwd\"},\n"                \
    "\"placement\": \"contiguous\",\n\"slots\": [\n"
#define LAST_SLOT(name, kind, role, bytes)                                                         \
    "{\"name\": \"" name "\", \"kind\": \"" kind "\", \"role\": \"" role                           \
    "\", \"part_bytes\": " #bytes ", \"element_bytes\": 4}\n"
#define SLOT(name, kind, role, bytes)                                                              \
    "{\"name\": \"" name "\", \"kind\": \"" kind "\", \"role\": \"" role                           \
    "\", \"part_bytes\": " #bytes ", \"element_bytes\": 4},\n"
#define MIDDLE                                                                                     \
    "],\n\"streams\": [{\"name\": \"main\", \"kind\": \"compute\"}],\n\"ranks\": [{\"ops\": [\n"
#define ALLOC(slot) "{\"op\": \"alloc\", \"slot\": \"" slot "\"},\n"
#define CALL(kernel, regions, ...)                                                                 \
    "{\"op\": \"compute\", \"stream\": \"main\", \"kernel\": \"" kernel                            \
    "\", \"regions\": [" regions "], " __VA_ARGS__ "},\n"
#define SYNC "{\"op\": \"sync\"},\n"
#define FREE(slot) "{\"op\": \"free\", \"slot\": \"" slot "\"},\n"
#define END "{\"op\": \"sync\"}]}]}\n"

#define ROWS "\"rows\": 8, \"width\": 8"
#define NORM ROWS ", \"epsilon\": 1e-05"
#define TABLE ROWS ", \"vocabulary\": 16, \"count\": 16"
#define LOGITS "\"rows\": 8, \"width\": 16, \"vocabulary\": 16, \"tokens\": 8"
#define STEP "\"elements\": 128, \"learning_rate\": 0.001, \"beta1\": 0.9, \"beta2\": 0.95"
#define FIRST ", \"first\": true"

/* 8 tokens of 8 elements, a vocabulary of 16, tied embeddings. Forward, backward and an
 * optimizer step, as texts to be joined. */
static const char *const step[] = {
    HEAD,
    SLOT("tok", "tokens", "input", 32),
    SLOT("w", "weight", "state", 512),
    SLOT("wn", "weight", "state", 32),
    SLOT("up", "weight", "state", 512),
    SLOT("down", "weight", "state", 256),
    SLOT("mom", "moments", "state", 1024),
    SLOT("clock", "numbers", "state", 4),
    SLOT("value", "numbers", "state", 4),
    SLOT("g", "gradient", "temp", 512),
    SLOT("gn", "gradient", "temp", 32),
    SLOT("gup", "gradient", "temp", 512),
    SLOT("gdown", "gradient", "temp", 256),
    SLOT("norm", "numbers", "temp", 4),
    SLOT("num", "numbers", "temp", 96),
    SLOT("x", "hidden", "temp", 256),
    SLOT("n", "hidden", "temp", 256),
    SLOT("gu", "hidden", "temp", 512),
    SLOT("p", "hidden", "temp", 256),
    SLOT("y", "hidden", "temp", 256),
    SLOT("z", "hidden", "temp", 256),
    SLOT("logits", "hidden", "temp", 512),
    SLOT("dz", "hidden", "temp", 256),
    SLOT("dp", "hidden", "temp", 256),
    SLOT("dgu", "hidden", "temp", 512),
    SLOT("dn", "hidden", "temp", 256),
    LAST_SLOT("spare", "hidden", "temp", 256),
    MIDDLE,
    ALLOC("g"),
    ALLOC("gn"),
    ALLOC("gup"),
    ALLOC("gdown"),
    ALLOC("norm"),
    ALLOC("num"),
    ALLOC("x"),
    ALLOC("n"),
    ALLOC("gu"),
    ALLOC("p"),
    ALLOC("y"),
    ALLOC("z"),
    ALLOC("logits"),
    ALLOC("dz"),
    ALLOC("dp"),
    ALLOC("dgu"),
    ALLOC("dn"),
    ALLOC("spare"),
    CALL("embed", "\"tok\", \"w\", \"x\"", TABLE),
    CALL("rms_norm", "\"x\", \"wn\", \"n\"", NORM),
    CALL("product", "\"n\", \"up\", \"gu\"", "\"m\": 8, \"n\": 16, \"k\": 8"),
    CALL("glu", "\"gu\", \"p\"", ROWS),
    CALL("product", "\"p\", \"down\", \"y\"", "\"m\": 8, \"n\": 8, \"k\": 8"),
    CALL("residual", "\"x\", \"y\", \"z\"", "\"elements\": 64"),
    CALL("product", "\"z\", \"w\", \"logits\"", "\"m\": 8, \"n\": 16, \"k\": 8"),
    CALL("loss_stats", "\"logits\", \"tok\", \"num\"", LOGITS),
    CALL("loss", "\"logits\", \"tok\", \"num\", \"logits\", \"value\"", LOGITS FIRST),
    CALL("product_dgrad", "\"logits\", \"w\", \"dz\"", "\"m\": 8, \"n\": 16, \"k\": 8" FIRST),
    CALL("product_wgrad", "\"z\", \"logits\", \"g\"", "\"m\": 8, \"n\": 16, \"k\": 8" FIRST),
    CALL("product_dgrad", "\"dz\", \"down\", \"dp\"", "\"m\": 8, \"n\": 8, \"k\": 8" FIRST),
    CALL("product_wgrad", "\"p\", \"dz\", \"gdown\"", "\"m\": 8, \"n\": 8, \"k\": 8" FIRST),
    CALL("glu_bwd", "\"gu\", \"dp\", \"dgu\"", ROWS),
    CALL("product_dgrad", "\"dgu\", \"up\", \"dn\"", "\"m\": 8, \"n\": 16, \"k\": 8" FIRST),
    CALL("product_wgrad", "\"n\", \"dgu\", \"gup\"", "\"m\": 8, \"n\": 16, \"k\": 8" FIRST),
    CALL("rms_norm_bwd", "\"x\", \"wn\", \"dn\", \"dz\", \"gn\"", NORM ", \"adds\": true" FIRST),
    CALL("embed_bwd", "\"tok\", \"dz\", \"g\"", TABLE),
    CALL("grad_norm", "\"g\", \"norm\"", "\"elements\": 128" FIRST),
    CALL("adam_fp32", "\"g\", \"norm\", \"clock\", \"mom\", \"w\"", STEP),
    SYNC,
    FREE("g"),
    FREE("gn"),
    FREE("gup"),
    FREE("gdown"),
    FREE("norm"),
    FREE("num"),
    FREE("x"),
    FREE("n"),
    FREE("gu"),
    FREE("p"),
    FREE("y"),
    FREE("z"),
    FREE("logits"),
    FREE("dz"),
    FREE("dp"),
    FREE("dgu"),
    FREE("dn"),
    FREE("spare"),
    END,
    NULL,
};

typedef struct {
    const char *from, *to, *message;
} Change;

static const Change changes[] = {
    /* A call is missing, or comes to nothing: its result is missing for the next call. */
    { CALL("embed", "\"tok\", \"w\", \"x\"", TABLE), "",
      "reads slot x, which has not been written" },
    { CALL("glu", "\"gu\", \"p\"", ROWS), "", "reads slot p, which has not been written" },
    { CALL("residual", "\"x\", \"y\", \"z\"", "\"elements\": 64"), "",
      "reads slot z, which has not been written" },
    { CALL("loss_stats", "\"logits\", \"tok\", \"num\"", LOGITS), "",
      "reads slot num, which has not been written" },
    { "\"m\": 8, \"n\": 16, \"k\": 8" FIRST "},\n{\"op\": \"compute\", \"stream\": \"main\", "
      "\"kernel\": \"product_dgrad\", \"regions\": [\"dz\"",
      "\"m\": 8, \"n\": 16, \"k\": 8},\n{\"op\": \"compute\", \"stream\": \"main\", "
      "\"kernel\": \"product_dgrad\", \"regions\": [\"dz\"",
      "reads slot g, which has not been written" },
    { CALL("product_dgrad", "\"logits\", \"w\", \"dz\"", "\"m\": 8, \"n\": 16, \"k\": 8" FIRST), "",
      "reads slot dz, which has not been written" },
    /* dx goes on without a start. */
    { "\"dz\"], \"m\": 8, \"n\": 16, \"k\": 8" FIRST, "\"dz\"], \"m\": 8, \"n\": 16, \"k\": 8",
      "(product_dgrad, stream main) reads slot dz, which has not been written" },
    /* dx is added to what is not there. */
    { "\"dn\", \"dz\", \"gn\"", "\"dn\", \"spare\", \"gn\"",
      "reads slot spare, which has not been written" },
    { "\"elements\": 128" FIRST, "\"elements\": 128",
      "reads slot norm, which has not been written" },
    /* Sizes, kinds and shapes. */
    { "\"elements\": 64", "\"elements\": 32", "takes 32 elements as its operand x" },
    { "\"kernel\": \"glu\", \"regions\": [\"gu\", \"p\"]",
      "\"kernel\": \"glu\", \"regions\": [\"p\", \"gu\"]", "takes 128 elements as its operand gu" },
    { "\"regions\": [\"tok\", \"w\", \"x\"]", "\"regions\": [\"tok\", \"g\", \"x\"]",
      "takes slot g (gradient) as its operand w (weight)" },
    { "\"regions\": [\"z\", \"logits\", \"g\"]", "\"regions\": [\"z\", \"logits\", \"w\"]",
      "takes slot w (weight) as its operand dw (gradient)" },
    { "\"vocabulary\": 16, \"tokens\": 8" FIRST, "\"vocabulary\": 16" FIRST,
      "is a loss over 0 tokens" },
    { "\"vocabulary\": 16, \"tokens\": 8}", "\"vocabulary\": 16, \"first_row\": 16, \"tokens\": 8}",
      "tokens from 16 on, beyond the vocabulary of 16 tokens" },
    { "\"vocabulary\": 16, \"tokens\": 8}", "\"vocabulary\": 16, \"first_row\": 8, \"tokens\": 8}",
      "is a loss over 8 tokens and 16 columns from 8 on" },
    { "\"vocabulary\": 16, \"tokens\": 8}", "\"tokens\": 8}",
      "tokens from 0 on, beyond the vocabulary of 0 tokens" },
    { "\"count\": 16}", "\"count\": 16, \"first_row\": 16}",
      "tokens from 16 on, beyond the vocabulary of 16 tokens" },
    { SLOT("x", "hidden", "temp", 256), SLOT("x", "hidden", "state", 256),
      "has a slot x of kind hidden as its state" },
    { SLOT("w", "weight", "state", 512), SLOT("w", "weight", "input", 512),
      "writes slot w, which is an input" },
    /* Weights may be larger than a call takes, not smaller; activations must match exactly. */
    { SLOT("up", "weight", "state", 512), SLOT("up", "weight", "state", 508),
      "takes 128 elements as its operand w, but 1 parts of slot up have 508 bytes" },
    { SLOT("tok", "tokens", "input", 32), SLOT("tok", "tokens", "input", 28),
      "takes 8 elements as its operand tokens" },
    { SLOT("mom", "moments", "state", 1024), SLOT("mom", "moments", "state", 1020),
      "takes 256 elements as its operand moments" },
    { SLOT("mom", "moments", "state", 1024),
      "{\"name\": \"mom\", \"kind\": \"moments\", \"role\": \"state\", \"parts\": 3, "
      "\"part_bytes\": 344, \"element_bytes\": 4},\n",
      "takes 3 parts of slot mom, which the moments of 128 parameters cannot be cut into" },
    { SLOT("y", "hidden", "temp", 256), SLOT("y", "hidden", "temp", 260),
      "takes 64 elements as its operand y, but 1 parts of slot y have 260 bytes" },
    { SLOT("w", "weight", "state", 512), SLOT("w", "weight", "state", 514),
      "has 514 bytes in a part of slot w, which are not whole elements of 4" },
    /* Attention has no place in such a program, nor the layer in one of attention. */
    { SLOT("tok", "tokens", "input", 32),
      SLOT("q", "q", "input", 256) SLOT("kv", "kv", "input", 512) SLOT("o", "o", "output", 256)
          SLOT("tok", "tokens", "input", 32),
      "calls a kernel of the layer outside attention" },
};

static LhProgram *
parse(const char *text)
{
    g_autoptr(GError) error = NULL;
    LhProgram *program = lh_program_parse("t.json", text, strlen(text), &error);

    ck_assert_msg(program != NULL, "%s", error == NULL ? "" : error->message);
    return program;
}

/* Checks the finding in @text after one change. */
static void
expect(const char *text, const Change *change)
{
    const char *place = strstr(text, change->from);
    g_autoptr(GString) changed = g_string_new(text);
    g_autoptr(LhProgram) program = NULL;
    g_autoptr(LhVerdict) verdict = NULL;

    ck_assert_msg(place != NULL, "no text %s", change->from);
    g_string_erase(changed, place - text, (gssize)strlen(change->from));
    g_string_insert(changed, place - text, change->to);
    program = parse(changed->str);
    verdict = lh_verify(program);
    ck_assert_msg(strstr(first_message(verdict), change->message) != NULL,
                  "%s: found: %s; wanted: %s", change->from, first_message(verdict),
                  change->message);
}

START_TEST(verify_layer_is_proven_as_it_is)
{
    g_autofree char *text = g_strjoinv("", (char **)(uintptr_t)step);
    g_autoptr(LhProgram) program = parse(text);
    g_autoptr(LhVerdict) verdict = lh_verify(program);

    ck_assert_msg(verdict->findings_total == 0, "%s", first_message(verdict));
    ck_assert(!verdict->attends);
    ck_assert_uint_eq(verdict->flops[0], 0);
}
END_TEST

/* Proves @text after one change. */
static void
expect_proven(const char *text, const char *from, const char *to)
{
    const char *place = strstr(text, from);
    g_autoptr(GString) changed = g_string_new(text);
    g_autoptr(LhProgram) program = NULL;
    g_autoptr(LhVerdict) verdict = NULL;

    ck_assert_msg(place != NULL, "no text %s", from);
    g_string_erase(changed, place - text, (gssize)strlen(from));
    g_string_insert(changed, place - text, to);
    program = parse(changed->str);
    verdict = lh_verify(program);
    ck_assert_msg(verdict->findings_total == 0, "%s: %s", to, first_message(verdict));
}

/* Rounded-up pieces (10 elements more than w has, 3 parts of 43 for 128), slots larger than a
 * call takes, and a padded vocabulary. */
START_TEST(verify_layer_takes_what_is_rounded_up)
{
    static const Change larger[] = {
        { SLOT("w", "weight", "state", 512), SLOT("w", "weight", "state", 552), NULL },
        { SLOT("g", "gradient", "temp", 512), SLOT("g", "gradient", "temp", 516), NULL },
        { SLOT("gup", "gradient", "temp", 512),
          "{\"name\": \"gup\", \"kind\": \"gradient\", \"role\": \"temp\", \"parts\": 3, "
          "\"part_bytes\": 172, \"element_bytes\": 4},\n",
          NULL },
        { SLOT("mom", "moments", "state", 1024), SLOT("mom", "moments", "state", 1032), NULL },
        { SLOT("norm", "numbers", "temp", 4), SLOT("norm", "numbers", "temp", 8), NULL },
        { SLOT("tok", "tokens", "input", 32), SLOT("tok", "tokens", "input", 36), NULL },
        { LOGITS "}", "\"rows\": 8, \"width\": 16, \"vocabulary\": 13, \"tokens\": 8}", NULL },
        { TABLE, ROWS ", \"vocabulary\": 13, \"count\": 16", NULL },
    };
    g_autofree char *text = g_strjoinv("", (char **)(uintptr_t)step);

    for (unsigned i = 0; i < G_N_ELEMENTS(larger); i++)
        expect_proven(text, larger[i].from, larger[i].to);
}
END_TEST

START_TEST(verify_layer_finds_changes)
{
    g_autofree char *text = g_strjoinv("", (char **)(uintptr_t)step);

    for (unsigned i = 0; i < G_N_ELEMENTS(changes); i++)
        expect(text, &changes[i]);
}
END_TEST

/* Attention's tensors are made from rows and back; the split is checked. */
#define HEADS                                                                                      \
    "\"rows\": 8, \"batch\": 1, \"members\": 1, \"heads\": 2, \"groups\": 2, \"head_dim\": 4, "    \
    "\"base\": 10000"
static const char *const heads[] = {
    HEAD,
    SLOT("x", "hidden", "input", 256),
    SLOT("z", "hidden", "input", 512),
    SLOT("y", "hidden", "output", 256),
    SLOT("w", "weight", "input", 256),
    SLOT("q", "q", "temp", 256),
    SLOT("kv", "kv", "temp", 512),
    SLOT("dkv", "dkv", "temp", 512),
    SLOT("drows", "hidden", "temp", 512),
    LAST_SLOT("o", "o", "temp", 256),
    MIDDLE,
    ALLOC("q"),
    ALLOC("kv"),
    ALLOC("dkv"),
    ALLOC("drows"),
    ALLOC("o"),
    CALL("rotary_q", "\"x\", \"q\"", HEADS),
    CALL("silu_kv", "\"z\", \"kv\"", HEADS),
    CALL("silu_kv_bwd", "\"z\", \"dkv\", \"drows\"", HEADS),
    CALL("out_product", "\"o\", \"w\", \"y\"",
         "\"m\": 8, \"n\": 8, \"k\": 8, \"batch\": 1, \"members\": 1"),
    SYNC,
    FREE("q"),
    FREE("kv"),
    FREE("dkv"),
    FREE("drows"),
    FREE("o"),
    END,
    NULL,
};

#define CUT_Q "\"kernel\": \"rotary_q\", \"regions\": [\"x\", \"q\"], "
#define CUT_KV "\"kernel\": \"silu_kv\", \"regions\": [\"z\", \"kv\"], "
static const Change cuts[] = {
    { "\"members\": 1", "\"members\": 2", "takes 1 parts of slot x for 2 members" },
    { "\"members\": 1", "\"members\": 3",
      "has 8 rows, which do not divide among 1 sequences of 3 members" },
    { "\"head_dim\": 4, \"base\"", "\"head_dim\": 5, \"base\"", "elements as its operand" },
    { "\"heads\": 2, \"groups\": 2, \"head_dim\": 4, \"base\"",
      "\"heads\": 1, \"groups\": 1, \"head_dim\": 8, \"base\"",
      "is called for head dimension 8, but slot q has 4" },
    /* q has no groups, and kv no heads. */
    { CUT_Q "\"rows\": 8, \"batch\": 1, \"members\": 1, \"heads\": 2, \"groups\": 2",
      CUT_Q "\"rows\": 8, \"batch\": 1, \"members\": 1, \"heads\": 1, \"groups\": 2",
      "takes 32 elements as its operand rows" },
    { CUT_KV "\"rows\": 8, \"batch\": 1, \"members\": 1, \"heads\": 2, \"groups\": 2",
      CUT_KV "\"rows\": 8, \"batch\": 1, \"members\": 1, \"heads\": 2, \"groups\": 1",
      "takes 64 elements as its operand rows" },
    { "\"rotary_q\"", "\"rotary_q_bwd\"", "takes slot x (hidden) as its operand dq (dq)" },
    { "\"rotary_q\"", "\"from_heads_bwd\"", "takes slot q (q) as its operand do (do)" },
    { "\"rotary_q\"", "\"from_heads\"", "takes slot x (hidden) as its operand o (o)" },
    { "[\"z\", \"dkv\", \"drows\"]", "[\"z\", \"kv\", \"drows\"]",
      "takes slot kv (kv) as its operand dkv (dkv)" },
    { "\"o\", \"w\"", "\"q\", \"w\"", "takes slot q (q) as its operand o (o)" },
    { "\"k\": 8, \"batch\": 1, \"members\": 1", "\"k\": 8, \"batch\": 1, \"members\": 2",
      "takes 1 parts of slot y for 2 members" },
    { "\"k\": 8, \"batch\": 1, \"members\": 1", "\"k\": 8",
      "has 8 rows, which do not divide among 0 sequences of 0 members" },
};

START_TEST(verify_layer_knows_how_heads_are_cut)
{
    g_autofree char *text = g_strjoinv("", (char **)(uintptr_t)heads);

    for (unsigned i = 0; i < G_N_ELEMENTS(cuts); i++)
        expect(text, &cuts[i]);
}
END_TEST

/* Collectives move parts of one size, in whole elements; the input has other sizes. */
START_TEST(verify_layer_moves_parts_of_one_size)
{
    static const Change sizes[] = {
        { "63", "63", "has 63 bytes in a part of slot temp, which are not whole elements of 4" },
        { "63", "60", "turns parts of 64 bytes of slot x into parts of 60 of slot temp" },
        { "63", "128", "turns parts of 64 bytes of slot x into parts of 128 of slot temp" },
    };
    g_autofree char *path = g_build_filename(g_getenv("LONGHAUL_SOURCE_DIR"), "fuzz", "corpus",
                                             "run", "collective_of_unequal_parts.json", NULL);
    g_autofree char *text = NULL;

    ck_assert(g_file_get_contents(path, &text, NULL, NULL));
    for (unsigned i = 0; i < G_N_ELEMENTS(sizes); i++)
        expect(text, &sizes[i]);
    expect_proven(text, "63", "64");
}
END_TEST

LH_TEST_MAIN("verify_layer", verify_layer_is_proven_as_it_is, verify_layer_takes_what_is_rounded_up,
             verify_layer_finds_changes, verify_layer_knows_how_heads_are_cut,
             verify_layer_moves_parts_of_one_size)
