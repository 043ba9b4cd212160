/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The real cuDNN on a machine without a GPU: plans for described devices, on a stand-in for the
 * driver (standin/driver.c). An engine must accept every graph and generate machine code for it.
 * The kernels it chooses and the workspaces they need are compared with data/cudnn/plans.tsv if the
 * version is that of the table; nothing runs. --print prints the table. Exits with 77 if there is
 * no cuDNN.
 */
#include "checking.h"
#include "runtime/gpu/cudnn_plan.h"
#include "skip.h"
#include "standin/driver.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ELF_BASE64 "f0VMRg" /* the first bytes of an ELF file */

static const LhCudnn *cudnn;
static __typeof__(&standin_driver_refused) driver_refused;

/* ---- shapes ---- */

#define F false
#define B true
#define BF16 LH_STORAGE_BF16
#define FP16 LH_STORAGE_FP16
#define FULL LH_CUDNN_FULL
#define CAUSAL LH_CUDNN_CAUSAL
#define SHIFTED LH_CUDNN_SHIFTED

static const struct {
    const char *device;
    LhCudnnShape shape;
} plans[] = {
    { "h200", { F, FULL, BF16, 1, 32, 8, 128, 8192, 8192, 8192, 8192 } },
    { "h200", { F, CAUSAL, BF16, 1, 32, 8, 128, 8192, 8192, 8192, 8192 } },
    { "h200", { F, SHIFTED, BF16, 1, 32, 8, 128, 4096, 16384, 4096, 16384 } },
    { "h200", { F, CAUSAL, FP16, 2, 16, 16, 64, 2048, 2048, 4096, 2048 } },
    { "h200", { F, CAUSAL, BF16, 1, 32, 32, 128, 8191, 8191, 8191, 8191 } },
    { "h200", { F, FULL, BF16, 1, 8, 2, 80, 100, 70, 100, 70 } },
    { "h200", { F, CAUSAL, BF16, 1, 8, 8, 256, 4096, 4096, 4096, 4096 } },
    { "h200", { F, FULL, BF16, 1, 8, 8, 8, 16, 32, 16, 32 } },
    { "h200", { B, FULL, BF16, 1, 32, 32, 128, 8192, 8192, 8192, 8192 } },
    { "h200", { B, CAUSAL, BF16, 1, 32, 8, 128, 8192, 8192, 8192, 8192 } },
    { "h200", { B, SHIFTED, BF16, 1, 32, 8, 128, 4096, 16384, 4096, 16384 } },
    { "h200", { B, CAUSAL, FP16, 2, 16, 16, 64, 2048, 2048, 4096, 2048 } },
    { "h200", { B, CAUSAL, BF16, 1, 32, 32, 128, 8191, 8191, 8191, 8191 } },
    { "h200", { B, FULL, BF16, 1, 8, 2, 80, 100, 70, 100, 70 } },
    { "a100", { F, CAUSAL, BF16, 1, 32, 8, 128, 8192, 8192, 8192, 8192 } },
    { "a100", { B, CAUSAL, BF16, 1, 32, 8, 128, 8192, 8192, 8192, 8192 } },
    { "b200", { F, CAUSAL, BF16, 1, 32, 8, 128, 8192, 8192, 8192, 8192 } },
    { "b200", { B, CAUSAL, BF16, 1, 32, 8, 128, 8192, 8192, 8192, 8192 } },
};

/* Graphs that no engine accepts. */
static const struct {
    const char *device;
    LhCudnnShape shape;
} refused[] = {
    { "h200", { F, FULL, BF16, 1, 8, 8, 100, 256, 256, 256, 256 } },
    { "a100", { B, FULL, BF16, 1, 8, 8, 256, 256, 256, 256, 256 } },
};

/* ---- devices ---- */

/* NULL with @error. */
static cudnnBackendDescriptor_t
properties_of(const char *device, GError **error)
{
    g_autofree char *path =
        g_strdup_printf("%s/tests/data/cudnn/%s.json", g_getenv("LONGHAUL_SOURCE_DIR"), device);
    g_autofree char *text = NULL;
    cudnnBackendDescriptor_t d = NULL;
    gsize length = 0;

    if (!g_file_get_contents(path, &text, &length, error) ||
        !lh_cudnn_check(cudnn,
                        cudnn->BackendCreateDescriptor(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, &d),
                        "properties", error) ||
        !lh_cudnn_check(cudnn,
                        cudnn->BackendSetAttribute(d, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION,
                                                   CUDNN_TYPE_CHAR, (int64_t)length + 1, text),
                        "properties", error) ||
        !lh_cudnn_check(cudnn, cudnn->BackendFinalize(d), device, error))
        return NULL;
    return d;
}

static LhCudnnPlan *
make_plan(const char *device, const LhCudnnShape *shape, GError **error)
{
    const LhCudnnTarget target = { .cudnn = cudnn, .properties = properties_of(device, error) };
    LhCudnnPlan *plan = target.properties == NULL ? NULL : lh_cudnn_plan_new(&target, shape, error);

    if (target.properties != NULL)
        (void)cudnn->BackendDestroyDescriptor(target.properties);
    return plan;
}

/* ---- plans ---- */

/* The plan as serialised by cuDNN; NULL with @error. */
static char *
json_of(const LhCudnnPlan *plan, GError **error)
{
    g_autofree char *text = NULL;
    int64_t length = 0, count = 0;

    if (!lh_cudnn_check(cudnn,
                        cudnn->BackendGetAttribute(plan->plan,
                                                   CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION,
                                                   CUDNN_TYPE_CHAR, 0, &length, NULL),
                        "length of the plan", error))
        return NULL;
    text = g_malloc0((gsize)length + 1);
    if (!lh_cudnn_check(cudnn,
                        cudnn->BackendGetAttribute(plan->plan,
                                                   CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION,
                                                   CUDNN_TYPE_CHAR, length, &count, text),
                        "text of the plan", error))
        return NULL;
    return g_steal_pointer(&text);
}

/* The value of "@name":6 or "@name":"text" in cuDNN's text, up to the next comma or brace; "" if
 * absent. Caller frees. */
static char *
value_of(const char *json, const char *name)
{
    g_autofree char *label = g_strdup_printf("\"%s\":", name);
    const char *at = strstr(json, label);
    g_autofree char *value = NULL;

    if (at == NULL)
        return g_strdup("");
    at += strlen(label);
    value = g_strndup(at, strcspn(at, ",}]"));
    return g_strdup(g_strdelimit(value, "\"", ' '));
}

/* A line of the table; NULL with @error. *@code: the beginning of the machine code, in base64. */
static char *
make_line(const char *device, const LhCudnnShape *shape, char **code, GError **error)
{
    LhCudnnPlan *plan = make_plan(device, shape, error);
    g_autofree char *text = lh_cudnn_shape_text(shape);
    g_autofree char *json = plan == NULL ? NULL : json_of(plan, error);
    g_autofree char *engine = NULL;
    g_autofree char *kernel = NULL;
    char *line = NULL;

    if (json != NULL) {
        engine = value_of(json, "engineId");
        kernel = value_of(json, "kernelName");
        *code = value_of(json, "cubin");
        line = g_strdup_printf("%s\t%s\t%s\t%s\t%" G_GUINT64_FORMAT, device, text,
                               g_strstrip(engine), g_strstrip(kernel), plan->workspace_bytes);
    }
    if (plan != NULL)
        lh_cudnn_plan_free(plan);
    return line;
}

/* ---- tests ---- */

/* Lines of the table; NULL if it is for another version. */
static char **
table_lines(void)
{
    g_autofree char *path =
        g_build_filename(g_getenv("LONGHAUL_SOURCE_DIR"), "tests/data/cudnn/plans.tsv", NULL);
    g_autofree char *version = g_strdup_printf("# cuDNN %zu\n", cudnn->version);
    g_autofree char *text = NULL;

    ck_assert_msg(g_file_get_contents(path, &text, NULL, NULL), "%s cannot be read", path);
    return g_str_has_prefix(text, version) ? g_strsplit(text + strlen(version), "\n", -1) : NULL;
}

START_TEST(an_engine_takes_every_graph)
{
    g_auto(GStrv) lines = table_lines();
    g_autoptr(GError) error = NULL;
    g_autofree char *line = NULL;
    g_autofree char *code = NULL;

    line = make_line(plans[_i].device, &plans[_i].shape, &code, &error);
    ck_assert_msg(line != NULL, "%s", error != NULL ? error->message : "");
    ck_assert_str_eq(driver_refused(), "");
    ck_assert_ptr_nonnull(strstr(line, "_flash_"));
    ck_assert_msg(g_str_has_prefix(g_strstrip(code), ELF_BASE64), "no machine code: %.20s", code);
    ck_assert_msg(lines == NULL || g_strv_contains((const char *const *)lines, line),
                  "not in plans.tsv: %s", line);
}
END_TEST

START_TEST(graphs_that_no_engine_takes_are_named)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *shape = lh_cudnn_shape_text(&refused[_i].shape);

    ck_assert_ptr_null(make_plan(refused[_i].device, &refused[_i].shape, &error));
    ck_assert_int_eq(error->code, 1);
    ck_assert_ptr_nonnull(strstr(error->message, shape));
    ck_assert_ptr_nonnull(strstr(error->message, "no engine of version 9."));
}
END_TEST

static int
print_table(void)
{
    printf("# cuDNN %zu\n", cudnn->version);
    for (size_t i = 0; i < G_N_ELEMENTS(plans); i++) {
        g_autoptr(GError) error = NULL;
        g_autofree char *code = NULL;
        g_autofree char *line = make_line(plans[i].device, &plans[i].shape, &code, &error);

        if (line == NULL) {
            fprintf(stderr, "%s: %s\n", plans[i].device, error->message);
            return EXIT_FAILURE;
        }
        printf("%s\n", line);
    }
    return EXIT_SUCCESS;
}

/* The driver must come first: cuDNN looks up libcuda.so.1 among the loaded libraries. */
static bool
load_libraries(void)
{
    void *driver = dlopen(DRIVER, RTLD_NOW | RTLD_GLOBAL);
    void *function = driver == NULL ? NULL : dlsym(driver, "standin_driver_refused");
    g_autoptr(GError) error = NULL;

    if (function == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        exit(EXIT_FAILURE);
    }
    memcpy(&driver_refused, &function, sizeof(function));
    cudnn = lh_cudnn_load(&error);
    if (cudnn == NULL)
        fprintf(stderr, "skipped: %s\n", error->message);
    return cudnn != NULL;
}

int
main(int argc, char **argv)
{
    Suite *suite = suite_create("cudnn_plans");
    TCase *cases = tcase_create("cudnn_plans");
    SRunner *runner = srunner_create(suite);
    int failed;

    suite_add_tcase(suite, cases);
    if (!load_libraries()) {
        srunner_free(runner);
        return skip_test("there is no cuDNN here");
    }
    if (argc == 2 && strcmp(argv[1], "--print") == 0) {
        srunner_free(runner);
        return print_table();
    }
    tcase_add_loop_test(cases, an_engine_takes_every_graph, 0, G_N_ELEMENTS(plans));
    tcase_add_loop_test(cases, graphs_that_no_engine_takes_are_named, 0, G_N_ELEMENTS(refused));
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
