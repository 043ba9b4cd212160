/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/gpu/cudnn_plan.h"

#include "base/error.h"

#include <string.h>

#define DIMS 4 /* batch, heads, rows, columns */
#define OPERATIONS_MAX 32
#define CONFIGS_MAX 16 /* engine configurations, best first */
#define STAT_ALIGN 4

typedef cudnnBackendDescriptor_t Descriptor;

/* A graph being built. After the first error all functions do nothing. */
typedef struct {
    const LhCudnnTarget *target;
    const LhCudnn *cudnn;
    const LhCudnnShape *shape;
    GPtrArray *descriptors;
    Descriptor operations[OPERATIONS_MAX];
    int64_t operations_count;
    int64_t names; /* unique ids assigned so far */
    GError *error;
} Graph;

typedef struct {
    int64_t dims[DIMS], strides[DIMS]; /* in elements */
} Layout;

/* ---- descriptors ---- */

static Descriptor
create(Graph *g, cudnnBackendDescriptorType_t type, const char *what)
{
    Descriptor d = NULL;

    if (g->error != NULL ||
        !lh_cudnn_check(g->cudnn, g->cudnn->BackendCreateDescriptor(type, &d), what, &g->error))
        return NULL;
    g_ptr_array_add(g->descriptors, d);
    return d;
}

static void
set(Graph *g, Descriptor d, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
    int64_t count, const void *values)
{
    g_autofree char *what = g_strdup_printf("attribute %d", (int)name);

    if (g->error == NULL)
        lh_cudnn_check(g->cudnn, g->cudnn->BackendSetAttribute(d, name, type, count, values), what,
                       &g->error);
}

static void
set_descriptor(Graph *g, Descriptor d, cudnnBackendAttributeName_t name, Descriptor value)
{
    set(g, d, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value);
}

static void
set_type(Graph *g, Descriptor d, cudnnBackendAttributeName_t name, cudnnDataType_t type)
{
    set(g, d, name, CUDNN_TYPE_DATA_TYPE, 1, &type);
}

static void
finalize_descriptor(Graph *g, Descriptor d, const char *what)
{
    if (g->error == NULL)
        lh_cudnn_check(g->cudnn, g->cudnn->BackendFinalize(d), what, &g->error);
}

/* ---- tensors ---- */

typedef enum {
    IN_MEMORY,
    VIRTUAL, /* internal to the graph */
    NUMBER,  /* scalar in host memory, read when the plan is run */
} Place;

static Descriptor
tensor(Graph *g, int64_t name, cudnnDataType_t type, Layout layout, Place place)
{
    Descriptor d = create(g, CUDNN_BACKEND_TENSOR_DESCRIPTOR, "tensor");
    const int64_t align =
        type == CUDNN_DATA_FLOAT || type == CUDNN_DATA_INT32 ? STAT_ALIGN : LH_CUDNN_ALIGN;
    const bool is_virtual = place == VIRTUAL, is_number = place == NUMBER;

    set_type(g, d, CUDNN_ATTR_TENSOR_DATA_TYPE, type);
    set(g, d, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, DIMS, layout.dims);
    set(g, d, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, DIMS, layout.strides);
    set(g, d, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &name);
    set(g, d, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &align);
    set(g, d, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &is_virtual);
    set(g, d, CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, 1, &is_number);
    finalize_descriptor(g, d, "tensor");
    return d;
}

static cudnnDataType_t
narrow_type(const LhCudnnShape *s)
{
    return s->storage == LH_STORAGE_FP16 ? CUDNN_DATA_HALF : CUDNN_DATA_BFLOAT16;
}

/* [batch][rows][heads][columns]; the call uses the first rows of each sequence. */
static Layout
token_major(const LhCudnnShape *s, bool of_keys, uint32_t columns)
{
    const int64_t heads = of_keys ? s->groups : s->heads;
    const int64_t rows = (int64_t)(of_keys ? s->nk : s->nq);
    const int64_t pitch = (int64_t)(of_keys ? s->k_rows : s->q_rows);
    const int64_t row = heads * columns;

    return (Layout){ .dims = { s->batch, heads, rows, columns },
                     .strides = { pitch * row, columns, row, 1 } };
}

/* [batch][heads][rows][columns], contiguous. */
static Layout
packed(const LhCudnnShape *s, uint64_t rows, uint64_t columns)
{
    const int64_t m = (int64_t)rows, n = (int64_t)columns;

    return (Layout){ .dims = { s->batch, s->heads, m, n },
                     .strides = { s->heads * m * n, m * n, n, 1 } };
}

/* The same memory with rows and columns swapped. */
static Layout
transposed(Layout l)
{
    return (Layout){ .dims = { l.dims[0], l.dims[1], l.dims[3], l.dims[2] },
                     .strides = { l.strides[0], l.strides[1], l.strides[3], l.strides[2] } };
}

static Descriptor
virtual_tensor(Graph *g, cudnnDataType_t type, Layout layout)
{
    return tensor(g, LH_CUDNN_TENSORS + g->names++, type, layout, VIRTUAL);
}

/* A score for each query and key of a head, fp32. */
static Descriptor
scores_tensor(Graph *g)
{
    return virtual_tensor(g, CUDNN_DATA_FLOAT, packed(g->shape, g->shape->nq, g->shape->nk));
}

/* A number for each query of a head, fp32. */
static Descriptor
row_numbers(Graph *g)
{
    return virtual_tensor(g, CUDNN_DATA_FLOAT, packed(g->shape, g->shape->nq, 1));
}

static Descriptor
number(Graph *g, LhCudnnTensor name, cudnnDataType_t type)
{
    return tensor(g, name, type, (Layout){ { 1, 1, 1, 1 }, { 1, 1, 1, 1 } }, NUMBER);
}

static Descriptor
of_queries(Graph *g, LhCudnnTensor name)
{
    return tensor(g, name, narrow_type(g->shape), token_major(g->shape, false, g->shape->dim),
                  IN_MEMORY);
}

static Descriptor
of_keys(Graph *g, LhCudnnTensor name)
{
    return tensor(g, name, narrow_type(g->shape), token_major(g->shape, true, g->shape->dim),
                  IN_MEMORY);
}

/* With keys as columns. */
static Descriptor
of_keys_transposed(Graph *g, LhCudnnTensor name)
{
    return tensor(g, name, narrow_type(g->shape),
                  transposed(token_major(g->shape, true, g->shape->dim)), IN_MEMORY);
}

static Descriptor
lse_of(Graph *g)
{
    return tensor(g, LH_CUDNN_LSE, CUDNN_DATA_FLOAT, token_major(g->shape, false, 1), IN_MEMORY);
}

/* ---- operations ---- */

static void
add_operation(Graph *g, Descriptor operation, const char *what)
{
    finalize_descriptor(g, operation, what);
    g_assert(g->operations_count < OPERATIONS_MAX);
    g->operations[g->operations_count++] = operation;
}

/* c = a b, per head; a head of @b may serve several of @a. */
static Descriptor
product(Graph *g, Descriptor a, Descriptor b, Descriptor c)
{
    Descriptor how = create(g, CUDNN_BACKEND_MATMUL_DESCRIPTOR, "product");
    Descriptor operation;

    set_type(g, how, CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_DATA_FLOAT);
    finalize_descriptor(g, how, "product");
    operation = create(g, CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR, "product");
    set_descriptor(g, operation, CUDNN_ATTR_OPERATION_MATMUL_ADESC, a);
    set_descriptor(g, operation, CUDNN_ATTR_OPERATION_MATMUL_BDESC, b);
    set_descriptor(g, operation, CUDNN_ATTR_OPERATION_MATMUL_CDESC, c);
    set_descriptor(g, operation, CUDNN_ATTR_OPERATION_MATMUL_DESC, how);
    add_operation(g, operation, "product");
    return c;
}

/* Inputs of a pointwise operation: x and, unless NULL, b and t. */
typedef struct {
    Descriptor x, b, t;
    int64_t axis; /* axis of CUDNN_POINTWISE_GEN_INDEX, or -1 */
    cudnnDataType_t type;
} Sources;

static Descriptor
pointwise(Graph *g, cudnnPointwiseMode_t mode, Sources from, Descriptor to)
{
    Descriptor how = create(g, CUDNN_BACKEND_POINTWISE_DESCRIPTOR, "pointwise operation");
    Descriptor operation;

    set(g, how, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode);
    set_type(g, how, CUDNN_ATTR_POINTWISE_MATH_PREC, from.type);
    if (from.axis >= 0)
        set(g, how, CUDNN_ATTR_POINTWISE_AXIS, CUDNN_TYPE_INT64, 1, &from.axis);
    finalize_descriptor(g, how, "pointwise operation");
    operation = create(g, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, "pointwise operation");
    set_descriptor(g, operation, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, how);
    set_descriptor(g, operation, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, from.x);
    if (from.b != NULL)
        set_descriptor(g, operation, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, from.b);
    if (from.t != NULL)
        set_descriptor(g, operation, CUDNN_ATTR_OPERATION_POINTWISE_TDESC, from.t);
    set_descriptor(g, operation, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, to);
    add_operation(g, operation, "pointwise operation");
    return to;
}

/* Applies @mode to x, or to x and b, in fp32. */
static Descriptor
combine(Graph *g, cudnnPointwiseMode_t mode, Descriptor x, Descriptor b, Descriptor to)
{
    return pointwise(g, mode, (Sources){ .x = x, .b = b, .axis = -1, .type = CUDNN_DATA_FLOAT },
                     to);
}

/* Reduces over the dimensions in which @to is smaller; several heads of queries share one of
 * keys. */
static Descriptor
reduce_to(Graph *g, cudnnReduceTensorOp_t operator, Descriptor x, Descriptor to)
{
    Descriptor how = create(g, CUDNN_BACKEND_REDUCTION_DESCRIPTOR, "reduction");
    Descriptor operation;

    set(g, how, CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, 1, &operator);
    set_type(g, how, CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_DATA_FLOAT);
    finalize_descriptor(g, how, "reduction");
    operation = create(g, CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR, "reduction");
    set_descriptor(g, operation, CUDNN_ATTR_OPERATION_REDUCTION_XDESC, x);
    set_descriptor(g, operation, CUDNN_ATTR_OPERATION_REDUCTION_YDESC, to);
    set_descriptor(g, operation, CUDNN_ATTR_OPERATION_REDUCTION_DESC, how);
    add_operation(g, operation, "reduction");
    return to;
}

/* The same memory with the layout of @to. */
static Descriptor
reshape(Graph *g, Descriptor x, Descriptor to)
{
    Descriptor operation = create(g, CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR, "reshape");

    set_descriptor(g, operation, CUDNN_ATTR_OPERATION_RESHAPE_XDESC, x);
    set_descriptor(g, operation, CUDNN_ATTR_OPERATION_RESHAPE_YDESC, to);
    add_operation(g, operation, "reshape");
    return to;
}

/* ---- attention ---- */

static Descriptor
index_of(Graph *g, Descriptor x, int64_t axis)
{
    Descriptor to =
        virtual_tensor(g, CUDNN_DATA_INT32, packed(g->shape, g->shape->nq, g->shape->nk));

    return pointwise(g, CUDNN_POINTWISE_GEN_INDEX,
                     (Sources){ .x = x, .axis = axis, .type = CUDNN_DATA_FLOAT }, to);
}

/* Sets scores to -inf where the key is masked; a query sees keys j <= i + shift. */
static Descriptor
masked(Graph *g, Descriptor x)
{
    const Layout layout = packed(g->shape, g->shape->nq, g->shape->nk);
    Descriptor row, column, sees;

    if (g->shape->mask == LH_CUDNN_FULL)
        return x;
    row = index_of(g, x, 2);
    column = index_of(g, x, 3);
    if (g->shape->mask == LH_CUDNN_SHIFTED)
        row = pointwise(g, CUDNN_POINTWISE_ADD,
                        (Sources){ .x = row,
                                   .b = number(g, LH_CUDNN_SHIFT, CUDNN_DATA_INT32),
                                   .axis = -1,
                                   .type = CUDNN_DATA_INT32 },
                        virtual_tensor(g, CUDNN_DATA_INT32, layout));
    sees = pointwise(g, CUDNN_POINTWISE_CMP_GE,
                     (Sources){ .x = row, .b = column, .axis = -1, .type = CUDNN_DATA_BOOLEAN },
                     virtual_tensor(g, CUDNN_DATA_BOOLEAN, layout));
    return pointwise(g, CUDNN_POINTWISE_BINARY_SELECT,
                     (Sources){ .x = x,
                                .b = number(g, LH_CUDNN_MINUS_INF, CUDNN_DATA_FLOAT),
                                .t = sees,
                                .axis = -1,
                                .type = CUDNN_DATA_FLOAT },
                     scores_tensor(g));
}

/* scale q k^T */
static Descriptor
logits(Graph *g, Descriptor q, Descriptor k_transposed, Descriptor scale)
{
    return combine(g, CUDNN_POINTWISE_MUL, product(g, q, k_transposed, scores_tensor(g)), scale,
                   scores_tensor(g));
}

/* m = max s, p = exp(s - m), l = sum p; lse = m + log l, o = (p / l) v */
static void
build_forward(Graph *g)
{
    const LhCudnnShape *s = g->shape;
    Descriptor q = of_queries(g, LH_CUDNN_Q), k = of_keys_transposed(g, LH_CUDNN_K);
    Descriptor v = of_keys(g, LH_CUDNN_V), o = of_queries(g, LH_CUDNN_O), lse = lse_of(g);
    Descriptor x = masked(g, logits(g, q, k, number(g, LH_CUDNN_SCALE, CUDNN_DATA_FLOAT)));
    Descriptor m = reduce_to(g, CUDNN_REDUCE_TENSOR_MAX, x, row_numbers(g));
    Descriptor p, l;

    x = combine(g, CUDNN_POINTWISE_SUB, x, m, scores_tensor(g));
    p = combine(g, CUDNN_POINTWISE_EXP, x, NULL, scores_tensor(g));
    l = reduce_to(g, CUDNN_REDUCE_TENSOR_ADD, p, row_numbers(g));
    combine(g, CUDNN_POINTWISE_ADD, m, combine(g, CUDNN_POINTWISE_LOG, l, NULL, row_numbers(g)),
            lse);
    p = combine(g, CUDNN_POINTWISE_DIV, p, l,
                virtual_tensor(g, narrow_type(s), packed(s, s->nq, s->nk)));
    product(g, p, v, o);
}

/* @to = x^T y per query head, then summed over the query heads that share a key head. */
static void
gradient_of_keys(Graph *g, Descriptor x, Descriptor y, LhCudnnTensor to)
{
    const LhCudnnShape *s = g->shape;
    Descriptor x_transposed =
        reshape(g, x, virtual_tensor(g, narrow_type(s), transposed(packed(s, s->nq, s->nk))));
    Descriptor result = of_keys(g, to);

    if (s->heads == s->groups) {
        product(g, x_transposed, y, result);
        return;
    }
    reduce_to(
        g, CUDNN_REDUCE_TENSOR_ADD,
        product(g, x_transposed, y, virtual_tensor(g, narrow_type(s), packed(s, s->nk, s->dim))),
        result);
}

/* delta = rowsum(do o): a number for each query of a head. */
static Descriptor
delta_of(Graph *g, Descriptor dout)
{
    const LhCudnnShape *s = g->shape;
    Layout layout = token_major(s, false, s->dim);
    Descriptor terms, sums;

    layout.strides[0] = (int64_t)s->heads * (int64_t)s->nq * s->dim;
    terms = combine(g, CUDNN_POINTWISE_MUL, dout, of_queries(g, LH_CUDNN_O),
                    virtual_tensor(g, CUDNN_DATA_FLOAT, layout));
    sums = reduce_to(g, CUDNN_REDUCE_TENSOR_ADD, terms, row_numbers(g));
    /* The engines require a factor here: the dropout scale, 1 without dropout. */
    return combine(g, CUDNN_POINTWISE_MUL, sums, number(g, LH_CUDNN_ONE, CUDNN_DATA_FLOAT),
                   tensor(g, LH_CUDNN_DELTA, CUDNN_DATA_FLOAT, packed(s, s->nq, 1), IN_MEMORY));
}

/* p = exp(s - lse), dv = p^T do; ds = scale p (do v^T - delta), dk = ds^T q, dq = ds k */
static void
build_backward(Graph *g)
{
    const LhCudnnShape *s = g->shape;
    Descriptor q = of_queries(g, LH_CUDNN_Q), k = of_keys_transposed(g, LH_CUDNN_K);
    Descriptor v = of_keys_transposed(g, LH_CUDNN_V), dout = of_queries(g, LH_CUDNN_DO);
    Descriptor scale = number(g, LH_CUDNN_SCALE, CUDNN_DATA_FLOAT);
    Descriptor delta = delta_of(g, dout), lse = lse_of(g);
    Descriptor p, ds, sum;

    p = combine(g, CUDNN_POINTWISE_SUB, logits(g, q, k, scale), lse, scores_tensor(g));
    p = combine(g, CUDNN_POINTWISE_EXP, masked(g, p), NULL, scores_tensor(g));
    gradient_of_keys(g, p, dout, LH_CUDNN_DV);
    ds = combine(g, CUDNN_POINTWISE_SUB, product(g, dout, v, scores_tensor(g)), delta,
                 scores_tensor(g));
    ds = combine(g, CUDNN_POINTWISE_MUL, ds, p, scores_tensor(g));
    ds = combine(g, CUDNN_POINTWISE_MUL, ds, scale,
                 virtual_tensor(g, narrow_type(s), packed(s, s->nq, s->nk)));
    gradient_of_keys(g, ds, q, LH_CUDNN_DK);
    sum = product(
        g, ds, reshape(g, k, virtual_tensor(g, narrow_type(s), token_major(s, true, s->dim))),
        tensor(g, LH_CUDNN_DQ_SUM, CUDNN_DATA_FLOAT, packed(s, s->nq, s->dim), IN_MEMORY));
    combine(g, CUDNN_POINTWISE_IDENTITY, sum, NULL, of_queries(g, LH_CUDNN_DQ));
}

/* ---- plans ---- */

char *
lh_cudnn_shape_text(const LhCudnnShape *s)
{
    static const char *const masks[] = { "full", "causal", "causal and shifted" };

    return g_strdup_printf("%s, %s, %s, B %u, nq %" G_GUINT64_FORMAT ", nk %" G_GUINT64_FORMAT
                           ", h %u, g %u, d %u",
                           s->backward ? "backward" : "forward", masks[s->mask],
                           s->storage == LH_STORAGE_FP16 ? "fp16" : "bf16", s->batch, s->nq, s->nk,
                           s->heads, s->groups, s->dim);
}

/* A device of this machine is given by its handle, a described one by its properties. */
static void
set_target(Graph *g, Descriptor d, cudnnBackendAttributeName_t by_handle,
           cudnnBackendAttributeName_t by_properties)
{
    if (g->target->handle != NULL)
        set(g, d, by_handle, CUDNN_TYPE_HANDLE, 1, &g->target->handle);
    else
        set_descriptor(g, d, by_properties, g->target->properties);
}

static Descriptor
operation_graph(Graph *g)
{
    Descriptor graph = create(g, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, "graph");

    set(g, graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, g->operations_count,
        g->operations);
    if (g->target->handle != NULL)
        set(g, graph, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &g->target->handle);
    finalize_descriptor(g, graph, "graph");
    return graph;
}

/* Asks the heuristics for engine configurations, best first; returns their number. */
static int64_t
find_configs(Graph *g, Descriptor graph, Descriptor configs[CONFIGS_MAX])
{
    Descriptor heuristics = create(g, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, "heuristics");
    const cudnnBackendHeurMode_t mode = CUDNN_HEUR_MODE_A;
    int64_t count = 0;

    set_descriptor(g, heuristics, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
    set(g, heuristics, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
    if (g->target->handle == NULL)
        set_descriptor(g, heuristics, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, g->target->properties);
    finalize_descriptor(g, heuristics, "heuristics");
    for (int i = 0; i < CONFIGS_MAX; i++)
        configs[i] = create(g, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, "engine");
    if (g->error != NULL ||
        !lh_cudnn_check(g->cudnn,
                        g->cudnn->BackendGetAttribute(heuristics, CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                                      CUDNN_TYPE_BACKEND_DESCRIPTOR, CONFIGS_MAX,
                                                      &count, configs),
                        "engines", &g->error))
        return 0;
    return MIN(count, CONFIGS_MAX);
}

/* The plan of one engine; NULL if it cannot run the graph, with the reason in @g->error. */
static Descriptor
plan_with(Graph *g, Descriptor config, int64_t *workspace_bytes)
{
    Descriptor plan = create(g, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, "plan");
    int64_t count = 0;

    set_descriptor(g, plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config);
    set_target(g, plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP);
    finalize_descriptor(g, plan, "plan");
    if (g->error == NULL)
        lh_cudnn_check(g->cudnn,
                       g->cudnn->BackendGetAttribute(plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                                                     CUDNN_TYPE_INT64, 1, &count, workspace_bytes),
                       "workspace", &g->error);
    return g->error == NULL ? plan : NULL;
}

/* The plan of the first engine that can run the graph. */
static Descriptor
make_plan(Graph *g, int64_t *workspace_bytes)
{
    Descriptor graph = operation_graph(g), configs[CONFIGS_MAX], plan = NULL;
    const int64_t count = find_configs(g, graph, configs);
    g_autofree char *said = NULL;
    g_autofree char *version = NULL;

    for (int64_t i = 0; i < count && plan == NULL; i++) {
        g_clear_error(&g->error);
        plan = plan_with(g, configs[i], workspace_bytes);
    }
    if (plan != NULL || (count == 0 && g->error != NULL))
        return plan;
    version = lh_cudnn_version_text(g->cudnn->version);
    said = g_strdup(g->error != NULL ? g->error->message : "cuDNN suggests none");
    g_clear_error(&g->error);
    g_set_error(&g->error, LH_ERROR, LH_ERROR_NO,
                "cuDNN: no engine of version %s computes this attention on this device: %s",
                version, said);
    return NULL;
}

LhCudnnPlan *
lh_cudnn_plan_new(const LhCudnnTarget *target, const LhCudnnShape *shape, GError **error)
{
    LhCudnnPlan *plan = g_new0(LhCudnnPlan, 1);
    Graph g = { .target = target, .cudnn = target->cudnn, .shape = shape };
    g_autofree char *text = NULL;
    int64_t workspace_bytes = 0;

    plan->shape = *shape;
    plan->cudnn = target->cudnn;
    plan->descriptors = g.descriptors = g_ptr_array_new();
    if (shape->backward)
        build_backward(&g);
    else
        build_forward(&g);
    plan->plan = g.error == NULL ? make_plan(&g, &workspace_bytes) : NULL;
    if (plan->plan != NULL) {
        plan->workspace_bytes = (uint64_t)workspace_bytes;
        return plan;
    }
    text = lh_cudnn_shape_text(shape);
    g_propagate_prefixed_error(error, g.error, "attention (%s): ", text);
    lh_cudnn_plan_free(plan);
    return NULL;
}

void
lh_cudnn_plan_free(LhCudnnPlan *plan)
{
    for (guint i = plan->descriptors->len; i > 0; i--)
        (void)plan->cudnn->BackendDestroyDescriptor(g_ptr_array_index(plan->descriptors, i - 1));
    g_ptr_array_unref(plan->descriptors);
    g_free(plan);
}

bool
lh_cudnn_plan_run(const LhCudnnPlan *plan, cudnnHandle_t handle,
                  void *const memory[LH_CUDNN_TENSORS], void *workspace, GError **error)
{
    Graph g = { .cudnn = plan->cudnn, .descriptors = g_ptr_array_new() };
    Descriptor pack = create(&g, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, "variant pack");
    int64_t names[LH_CUDNN_TENSORS], count = 0;
    void *places[LH_CUDNN_TENSORS];

    for (int i = 0; i < LH_CUDNN_TENSORS; i++) {
        if (memory[i] == NULL)
            continue;
        names[count] = i;
        places[count++] = memory[i];
    }
    set(&g, pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, count, names);
    set(&g, pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, count, places);
    set(&g, pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace);
    finalize_descriptor(&g, pack, "variant pack");
    if (g.error == NULL)
        lh_cudnn_check(g.cudnn, g.cudnn->BackendExecute(handle, plan->plan, pack), "execution",
                       &g.error);
    if (pack != NULL)
        (void)g.cudnn->BackendDestroyDescriptor(pack);
    g_ptr_array_unref(g.descriptors);
    if (g.error == NULL)
        return true;
    g_propagate_error(error, g.error);
    return false;
}
