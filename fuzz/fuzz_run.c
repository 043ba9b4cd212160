/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Explicit programs that the verifier proves, run on the CPU: they end, stay within their buffers,
 * have the verifier's and the simulator's counts of bytes, flops and memory, and compute attention.
 * Programs too large for a fuzzer are skipped.
 */
#include "base/error.h"
#include "execute/execute.h"
#include "fuzz.h"
#include "program/explicit/explicit.h"
#include "program/explicit/explicit_read.h"
#include "verify/verify.h"

#include <math.h>
#include <string.h>

#define RANKS_MAX 8
#define TOKENS_MAX 512
#define BYTES_MAX (UINT64_C(1) << 22) /* of a rank's slots */
#define OPS_MAX 4000
#define DEADLINE_PS INT64_C(20000000000000)

static bool
is_small(const LhProgram *program)
{
    const LhAttention *a = &program->params.attention;
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < program->slots_count && bytes <= BYTES_MAX; i++)
        bytes += program->slots[i].parts * program->slots[i].part_bytes;
    return lh_program_ranks(program) <= RANKS_MAX && a->seq_length <= TOKENS_MAX &&
           (uint64_t)a->batch * a->heads * a->head_dim <= TOKENS_MAX && bytes <= BYTES_MAX;
}

/* Allowed errors: unsupported by the device, or too long to simulate. */
static void
check_refusal(const GError *error)
{
    g_assert_nonnull(error);
    g_assert(g_error_matches(error, LH_ERROR, LH_ERROR_NO) ||
             strstr(error->message, "26 days") != NULL);
}

static void
check_results(const LhExecuted *executed)
{
    g_assert(executed->counts_ok);
    g_assert(executed->errors.ok);
}

static void
run(const LhProgram *program)
{
    const LhExecuteParams params = { .backend = &lh_backend_cpu, .deadline_ps = DEADLINE_PS };
    g_autoptr(LhScenario) scenario = lh_scenario_new();
    g_autoptr(GError) error = NULL;
    g_autoptr(LhSetup) setup = NULL;
    g_autoptr(LhExecuted) executed = NULL;

    scenario->ranks = lh_program_ranks(program);
    setup = lh_setup_new(scenario, &error);
    g_assert_no_error(error);
    executed = lh_execute_program(setup, program, &params, &error);
    if (executed == NULL)
        check_refusal(error);
    else
        check_results(executed);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    g_autoptr(LhProgram) program = lh_program_parse(FUZZ_NAME, (const char *)data, size, NULL);
    g_autoptr(LhVerdict) verdict = NULL;

    if (program == NULL || !is_small(program))
        return 0;
    verdict = lh_verify(program);
    if (verdict->findings_total == 0 && verdict->ops <= OPS_MAX)
        run(program);
    return 0;
}
