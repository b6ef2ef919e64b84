//! A call of every function that accepts expressions: `b` is a failed expression, `x` is valid.

use nxla::graph::{
    for_each_binary, for_each_composed_binary, for_each_composed_unary, for_each_unary,
};
use nxla::initializers::{he_normal, orthogonal};
use nxla::prelude::*;
use nxla::sharding::collectives::{
    all_gather, all_to_all, pmax, pmean, pmin, ppermute, psum, psum_scatter, pvary,
};
use nxla::vectors::EntryAxes;
use nxla::{
    Choice, Container, Convolution, Covariance, Draw, Error, FftNorm, Keep, Leaves, Norm,
    OuterPadding, Pool, Quantile, Replay, RunningNorm, Segment, Side, Slice, Tree, Triangular,
    Window, annotate, block, checkpoint, cond, custom_grad, custom_jvp, fori, fori_with, hessian,
    hessian_diagonal, hook, hvp, if_, jacfwd, jacobian, jacrev, jvp, linearize, map, metadata,
    named_hook, named_hook_or, print_value, runtime_call, safe_where, scan, scan_reverse,
    scan_times, scan_with, vjp, vmap, when, while_loop, while_loop_with,
};

/// A call with the name of the function. The result is the leaves of the function's results.
pub(crate) type Case = (&'static str, fn(&Expr, &Expr) -> Vec<Expr>);

fn leaves(results: impl Tree<Expr>) -> Vec<Expr> {
    results.leaves()
}

macro_rules! cases {
    (|$b:ident, $x:ident| $($name:ident: $($call:expr),+;)*) => {
        [$($((stringify!($name), (|$b: &Expr, $x: &Expr| {
            let _ = ($b, $x);
            leaves($call)
        }) as fn(&Expr, &Expr) -> Vec<Expr>)),+),*]
    };
}

macro_rules! unary {
    ($($(#[$doc:meta])* $variant:ident $method:ident $name:literal $class:ident ($($lowering:tt)*) $operations:literal $domain:tt $public:literal [$($example:literal)*];)*) => {
        cases! { |b, x| $($method: b.$method();)* }
    };
}

macro_rules! binary {
    ($($(#[$doc:meta])* $variant:ident $method:ident $name:literal $class:ident ($($lowering:tt)*) $operations:literal $public:literal [$($example:literal)*];)*) => {
        cases! { |b, x| $($method: b.$method(x), x.$method(b), b.$method(2);)* }
    };
}

macro_rules! composed_unary {
    ($($(#[$doc:meta])* $method:ident $class:ident $public:literal [$($example:literal)*];)*) => {
        cases! { |b, x| $($method: b.$method();)* }
    };
}

macro_rules! composed_binary {
    ($($(#[$doc:meta])* $method:ident $class:ident $public:literal [$($example:literal)*];)*) => {
        cases! { |b, x| $($method: b.$method(x), x.$method(b), b.$method(2);)* }
    };
}

/// All calls.
pub(crate) fn all() -> Vec<Case> {
    let mut cases: Vec<Case> = for_each_unary!(unary).to_vec();
    cases.extend(for_each_binary!(binary));
    cases.extend(for_each_composed_unary!(composed_unary));
    cases.extend(for_each_composed_binary!(composed_binary));
    cases.extend(operators());
    cases.extend(basic());
    cases.extend(linear_algebra());
    cases.extend(movement());
    cases.extend(networks());
    cases.extend(random());
    cases.extend(statistics());
    cases.extend(reductions());
    cases.extend(indices());
    cases.extend(folds());
    cases.extend(control());
    cases.extend(host_functions());
    cases.extend(transforms());
    cases.extend(vectors());
    cases.extend(collectives());
    cases
}

fn operators() -> impl IntoIterator<Item = Case> {
    cases! { |b, x|
        operator: b + x, x + b, b * 2.0, 2.0 - b, -b, b / Tensor::from(2.0f32);
        of: Expr::of(b);
    }
}

const NORM: RunningNorm = RunningNorm { axis: 0, epsilon: 1e-5, momentum: 0.9 };
const CHOICE: Choice = Choice::new(2);

fn basic() -> impl IntoIterator<Item = Case> {
    cases! { |b, x|
        kron: b.kron(x), x.kron(b);
        dot: b.dot(x), x.dot(b);
        dot_general: b.dot_general(x, [&[0], &[0]], [&[0], &[0]]), x.dot_general(b, [&[0], &[0]], [&[0], &[0]]);
        tensordot: b.tensordot(x, 1), x.tensordot(b, 1);
        matmul: b.matmul(x), x.matmul(b);
        vecdot: b.vecdot(x, 0), x.vecdot(b, 0);
        outer: b.outer(x), x.outer(b);
        conv: b.conv(x, &Convolution::same()), x.conv(b, &Convolution::same());
        einsum: Expr::einsum("ab", &[x, b]);
        stop_grad: b.stop_grad();
        zeros_like: b.zeros_like();
        ones_like: b.ones_like();
        full_like: b.full_like(1);
        linspace_to: b.linspace_to(x, 1, false, DType::F32), x.linspace_to(b, 1, false, DType::F32);
        tril: b.tril(0);
        triu: b.triu(0);
        take_diagonal: b.take_diagonal(0);
        make_diagonal: b.make_diagonal(0);
        put_diagonal: b.put_diagonal(x, 0), x.put_diagonal(b, 0);
        meshgrid: Expr::meshgrid(&[x, b]);
        clip: b.clip(x, x), x.clip(x, b);
        as_type: b.as_type(DType::F32);
        bitcast: b.bitcast(DType::F32);
        all_close: b.all_close(x, 0.5, 0.5, false), x.all_close(b, 0.5, 0.5, false);
        is_close: b.is_close(x, 0.5, 0.5, false), x.is_close(b, 0.5, 0.5, false);
        gather: b.gather(x, 0), x.gather(b, 0);
        indexed_add: b.indexed_add(x, x, 0), x.indexed_add(x, b, 0);
        indexed_put: b.indexed_put(x, x, 0), x.indexed_put(x, b, 0);
        diff: b.diff(1, 0);
        sort: b.sort(0);
        argsort: b.argsort(0);
        top_k: b.top_k(1);
    }
}

fn linear_algebra() -> impl IntoIterator<Item = Case> {
    cases! { |b, x|
        cholesky: b.cholesky();
        triangular_solve: b.triangular_solve(x, Triangular::lower()), x.triangular_solve(b, Triangular::lower());
        adjoint: b.adjoint();
        norm: b.norm(Norm::Euclid, 0);
        fft: b.fft(None, 0, FftNorm::Backward);
        ifft: b.ifft(None, 0, FftNorm::Backward);
        rfft: b.rfft(None, 0, FftNorm::Backward);
        irfft: b.irfft(None, 0, FftNorm::Backward);
        hfft: b.hfft(None, 0, FftNorm::Backward);
        ihfft: b.ihfft(None, 0, FftNorm::Backward);
        fftn: b.fftn(None, 0, FftNorm::Backward);
        ifftn: b.ifftn(None, 0, FftNorm::Backward);
        rfftn: b.rfftn(None, 0, FftNorm::Backward);
        irfftn: b.irfftn(None, 0, FftNorm::Backward);
        expm: b.expm();
        fftshift: b.fftshift(0);
        ifftshift: b.ifftshift(0);
        lu: b.lu();
        qr: b.qr(false);
        eigh: b.eigh();
        svd: b.svd(false);
        singular_values: b.singular_values();
        solve: b.solve(x), x.solve(b);
        invert: b.invert();
        determinant: b.determinant();
        slogdet: b.slogdet();
        pinv: b.pinv(None);
        least_squares: b.least_squares(x, None), x.least_squares(b, None);
        matrix_power: b.matrix_power(0);
        matrix_rank: b.matrix_rank(None);
        cross: b.cross(x, 0), x.cross(b, 0);
        matrix_trace: b.matrix_trace(0);
    }
}

fn movement() -> impl IntoIterator<Item = Case> {
    cases! { |b, x|
        reshape: b.reshape([6]);
        reshape_auto: b.reshape_auto(&[None]);
        rename: b.rename(["a", "b"]);
        flatten: b.flatten(0);
        squeeze: b.squeeze(0);
        new_axis: b.new_axis(0);
        new_named_axis: b.new_named_axis(0, "ab");
        swap_axes: b.swap_axes(0, 0);
        matrix_transpose: b.matrix_transpose();
        rotate: b.rotate(0, [0, 1]);
        transpose: b.transpose(0);
        move_axes: b.move_axes(&[0], &[0]);
        reverse: b.reverse(0);
        broadcast_to: b.broadcast_to([6]);
        broadcast_along: b.broadcast_along([6], &[0]);
        pad: b.pad(x, [(0, 0), (0, 0)]), x.pad(b, [(0, 0), (0, 0)]);
        pad_between: b.pad_between(x, &[]), x.pad_between(b, &[]);
        pad_outer: b.pad_outer(OuterPadding::Cyclic, &[(0, 0), (0, 0)]);
        split: b.split(0, 0);
        tile: b.tile(&[1, 1]);
        repeat: b.repeat(&[1, 1], 0);
        roll: b.roll(0, 0);
        unstack: b.unstack(0);
        concatenate: Expr::concatenate(&[x, b], 0);
        stack: Expr::stack(&[x, b], 0);
        broadcast_together: Expr::broadcast_together(&[x, b]);
    }
}

fn networks() -> impl IntoIterator<Item = Case> {
    cases! { |b, x|
        gelu: b.gelu(false);
        elu: b.elu(0.5);
        celu: b.celu(0.5);
        leaky_relu: b.leaky_relu(0.5);
        squareplus: b.squareplus(0.5);
        softmax: b.softmax(0);
        log_softmax: b.log_softmax(0);
        glu: b.glu(0);
        one_hot: b.one_hot(1, 0, DType::F32);
        embedding: b.embedding(x), x.embedding(b);
        dropout: b.dropout(x, 0.5), x.dropout(b, 0.5);
        layer_norm: b.layer_norm(0, 0.5);
        affine_layer_norm: b.affine_layer_norm(x, x, 0, 0.5), x.affine_layer_norm(x, b, 0, 0.5);
        rms_norm: b.rms_norm(x, 0, 0.5), x.rms_norm(b, 0, 0.5);
        group_norm: b.group_norm(x, x, 1, 0, 0.5), x.group_norm(x, b, 1, 0, 0.5);
        batch_norm: b.batch_norm(x, x, x, x, 0, 0.5), x.batch_norm(x, x, x, b, 0, 0.5);
        batch_norm_train: b.batch_norm_train(x, x, x, x, NORM), x.batch_norm_train(x, x, x, b, NORM);
        attention: b.attention(x, x, false), x.attention(x, b, false);
        masked_attention: b.masked_attention(x, x, x, false), x.masked_attention(x, x, b, false);
        biased_attention: b.biased_attention(x, x, x, false), x.biased_attention(x, x, b, false);
        softmax_cross_entropy: b.softmax_cross_entropy(x, 0), x.softmax_cross_entropy(b, 0);
        integer_cross_entropy: b.integer_cross_entropy(x, 0), x.integer_cross_entropy(b, 0);
        sigmoid_cross_entropy: b.sigmoid_cross_entropy(x), x.sigmoid_cross_entropy(b);
        huber_loss: b.huber_loss(x, 0.5), x.huber_loss(b, 0.5);
        squared_error: b.squared_error(x), x.squared_error(b);
        kl_divergence: b.kl_divergence(x, 0), x.kl_divergence(b, 0);
        cosine_similarity: b.cosine_similarity(x, 0, 0.5), x.cosine_similarity(b, 0, 0.5);
        max_pool: b.max_pool(&Pool::default());
        avg_pool: b.avg_pool(&Pool::default());
    }
}

fn random() -> impl IntoIterator<Item = Case> {
    cases! { |b, x|
        random_split: b.random_split(1);
        random_fold_in: b.random_fold_in(x), x.random_fold_in(b);
        initialize: b.initialize(he_normal(), Draw::new([2, 2])), b.initialize(orthogonal(1.0), Draw::new([2, 2]));
        random_uniform: b.random_uniform(0.0..1.0, Draw::new([2]));
        random_normal: b.random_normal(0.5, 0.5, Draw::new([2]));
        random_integers: b.random_integers(0..9, Draw::new([2]));
        random_gumbel: b.random_gumbel(Draw::new([2]));
        random_bernoulli: b.random_bernoulli(x, Draw::new([2])), x.random_bernoulli(b, Draw::new([2]));
        random_exponential: b.random_exponential(x, Draw::new([2])), x.random_exponential(b, Draw::new([2]));
        random_laplace: b.random_laplace(x, x, Draw::new([2])), x.random_laplace(x, b, Draw::new([2]));
        random_truncated_normal: b.random_truncated_normal(x, x, Draw::new([2])), x.random_truncated_normal(x, b, Draw::new([2]));
        random_gamma: b.random_gamma(x, Draw::new([2])), x.random_gamma(b, Draw::new([2]));
        random_beta: b.random_beta(x, x, Draw::new([2])), x.random_beta(x, b, Draw::new([2]));
        random_poisson: b.random_poisson(x, Draw::new([2])), x.random_poisson(b, Draw::new([2]));
        random_multivariate_normal: b.random_multivariate_normal(x, x, Covariance::Cholesky, Draw::new([2])),
            x.random_multivariate_normal(x, b, Covariance::Cholesky, Draw::new([2]));
        take_along_axis: b.take_along_axis(x, 0), x.take_along_axis(b, 0);
        random_dirichlet: b.random_dirichlet(x, Draw::new([2])), x.random_dirichlet(b, Draw::new([2]));
        random_categorical: b.random_categorical(x, 0, Draw::new([2])), x.random_categorical(b, 0, Draw::new([2]));
        random_shuffle: b.random_shuffle(x, 0, false), x.random_shuffle(b, 0, false);
        random_choice: b.random_choice(x, CHOICE), x.random_choice(b, CHOICE);
        random_weighted_choice: b.random_weighted_choice(x, x, CHOICE), x.random_weighted_choice(x, b, CHOICE);
    }
}

fn statistics() -> impl IntoIterator<Item = Case> {
    cases! { |b, x|
        count_nonzero: b.count_nonzero(0);
        weighted_mean: b.weighted_mean(x, 0), x.weighted_mean(b, 0);
        variance: b.variance(0, 0);
        standard_deviation: b.standard_deviation(0, 0);
        covariance: b.covariance(0);
        covariance_about: b.covariance_about(x, 0), x.covariance_about(b, 0);
        logsumexp: b.logsumexp(0);
        scaled_logsumexp: b.scaled_logsumexp(x, 0), x.scaled_logsumexp(b, 0);
        median: b.median(0);
        mode: b.mode(0);
        argmax: b.argmax(0);
        argmin: b.argmin(0);
        nan_mean: b.nan_mean(0);
        nan_variance: b.nan_variance(0, 0.5);
        nan_standard_deviation: b.nan_standard_deviation(0, 0.5);
        nan_cumulative_sum: b.nan_cumulative_sum(0);
        nan_cumulative_product: b.nan_cumulative_product(0);
        nan_argmax: b.nan_argmax(0);
        nan_argmin: b.nan_argmin(0);
        quantile: b.quantile(x, 0, Quantile::default()), x.quantile(b, 0, Quantile::default());
        segment: b.segment(x, Segment::Sum, 1), x.segment(b, Segment::Sum, 1);
        searchsorted: b.searchsorted(x, Side::Left), x.searchsorted(b, Side::Left);
        bincount: b.bincount(1);
        bin_edges: b.bin_edges(1, None);
        histogram: b.histogram(x, false), x.histogram(b, false);
        weighted_histogram: b.weighted_histogram(x, x, false), x.weighted_histogram(x, b, false);
        interpolate: b.interpolate(x, x), x.interpolate(x, b);
        interpolate_between: b.interpolate_between(x, x, x, x), x.interpolate_between(x, x, x, b);
        interpolate_periodic: b.interpolate_periodic(x, x, 0.5), x.interpolate_periodic(x, b, 0.5);
        window_scatter_max: b.window_scatter_max(x, x, &Window::new([1, 1])), x.window_scatter_max(x, b, &Window::new([1, 1]));
        window_scatter_min: b.window_scatter_min(x, x, &Window::new([1, 1])), x.window_scatter_min(x, b, &Window::new([1, 1]));
    }
}

fn reductions() -> impl IntoIterator<Item = Case> {
    cases! { |b, x|
        sum: b.sum();
        sum_over: b.sum_over(0);
        product: b.product();
        product_over: b.product_over(0);
        mean: b.mean();
        mean_over: b.mean_over(0);
        reduce_max: b.reduce_max();
        reduce_max_over: b.reduce_max_over(0);
        reduce_min: b.reduce_min();
        reduce_min_over: b.reduce_min_over(0);
        all: b.all();
        all_over: b.all_over(0);
        any: b.any();
        any_over: b.any_over(0);
        window_sum: b.window_sum(&Window::new([1, 1]));
        window_product: b.window_product(&Window::new([1, 1]));
        window_max: b.window_max(&Window::new([1, 1]));
        window_min: b.window_min(&Window::new([1, 1]));
        window_mean: b.window_mean(&Window::new([1, 1]));
        cumulative_sum: b.cumulative_sum(0);
        cumulative_sum_reverse: b.cumulative_sum_reverse(0);
        cumulative_product: b.cumulative_product(0);
        cumulative_product_reverse: b.cumulative_product_reverse(0);
        cumulative_max: b.cumulative_max(0);
        cumulative_max_reverse: b.cumulative_max_reverse(0);
        cumulative_min: b.cumulative_min(0);
        cumulative_min_reverse: b.cumulative_min_reverse(0);
        nan_sum: b.nan_sum(0);
        nan_product: b.nan_product(0);
        nan_max: b.nan_max(0);
        nan_min: b.nan_min(0);
        relu: b.relu();
        relu6: b.relu6();
        hard_tanh: b.hard_tanh();
        hard_sigmoid: b.hard_sigmoid();
        hard_silu: b.hard_silu();
        silu: b.silu();
        selu: b.selu();
        softplus: b.softplus();
        log_sigmoid: b.log_sigmoid();
        soft_sign: b.soft_sign();
        mish: b.mish();
        sparse_plus: b.sparse_plus();
        sparse_sigmoid: b.sparse_sigmoid();
        log1mexp: b.log1mexp();
    }
}

fn indices() -> impl IntoIterator<Item = Case> {
    cases! { |b, x|
        at: b.at(0), x.at(b), b.at((.., 0));
        at_axis: b.at_axis(0, 0), x.at_axis(b, 0);
        slice_along_axis: b.slice_along_axis(0, 1, 0), x.slice_along_axis(b, 1, 0);
        put_slice_along_axis: b.put_slice_along_axis(0, x, 0), x.put_slice_along_axis(0, b, 0);
        take: b.take(x, 0), x.take(b, 0);
        slice: b.slice(&Slice::new([0, 0], [1, 1])), x.slice(&Slice::new([b, b], [1, 1]));
        put_slice: b.put_slice(x, &[0, 0]), x.put_slice(b, &[0, 0]), x.put_slice(x, &[b, b]);
        select: b.select(x, x), x.select(b, 1), x.select(2, b);
        axis_index: drop(b.axis_index(0));
        axis_size: drop(b.axis_size(0));
        ty: drop((b.ty(), b.shape(), b.dtype(), b.to_string(), format!("{b:?}")));
        id: drop(b.id());
    }
}

fn folds() -> impl IntoIterator<Item = Case> {
    cases! { |b, x|
        reduce: b.reduce(0, 0, |x, y| x + y), x.reduce(b, 0, |x, y| x + y), x.reduce(0, 0, |x, _| x + b);
        window_reduce: b.window_reduce(0, &Window::new([1, 1]), |x, y| x + y),
            x.window_reduce(0, &Window::new([1, 1]), |x, _| x + b);
    }
}

fn control() -> impl IntoIterator<Item = Case> {
    cases! { |b, x|
        cond: cond(b, || x.clone(), || x.clone()), cond(true, || b.clone(), || x.clone()),
            cond(x.sum(), || x.clone(), || b.clone());
        if_: if_(b, || x.clone()), if_(x.sum(), || b.clone());
        when: when(b, || x.clone()).otherwise(|| x.clone());
        or_when: when(x.sum(), || x.clone()).or_when(b, || x.clone()).otherwise(|| x.clone());
        otherwise: when(x.sum(), || x.clone()).otherwise(|| b.clone());
        while_loop: while_loop(b.clone(), |x| x.sum().less(1), |x| x + 1),
            while_loop(x.clone(), |_| b.clone(), |x| x + 1),
            while_loop(x.clone(), |x| x.sum().less(1), |_| b.clone());
        while_loop_with: while_loop_with(Replay::default(), b.clone(), |x| x.less(1), |x| x);
        fori: fori(b, 3, x.clone(), |_, x| x), fori(0, b, x.clone(), |_, x| x),
            fori(0, 3, b.clone(), |_, x| x), fori(0, 3, x.clone(), |_, _| b.clone());
        fori_with: fori_with(Replay::default(), 0, 3, b.clone(), |_, x| x);
        scan: scan(b.clone(), x.clone(), |c, x| (c, x)), scan(x.clone(), b.clone(), |c, x| (c, x)),
            scan(x.clone(), x.clone(), |_, x| (b.clone(), x)), scan((), x.clone(), |(), _| ((), b.clone()));
        scan_with: scan_with(Replay::default(), b.clone(), x.clone(), |c, x| (c, x));
        scan_reverse: scan_reverse(b.clone(), x.clone(), |c, x| (c, x));
        scan_times: scan_times(3, b.clone(), |c| (c.clone(), c)), scan_times(0, b.clone(), |c| (c.clone(), c));
        map: map(b.clone(), |x| x), map(x.clone(), |_| b.clone());
        annotate: annotate(b.clone(), "a note");
        metadata: metadata(b.clone(), [("layer", nxla::graph::Note::from(3))]);
        block: block("named", b.clone(), |x: Expr| x), block("named", x.clone(), |_: Expr| b.clone());
        checkpoint: checkpoint(|x: Expr| x + 1, Keep::Nothing)(b.clone()),
            checkpoint(|_: Expr| b.clone(), Keep::Nothing)(x.clone());
        custom_grad: custom_grad(b.clone(), x, |c| c), custom_grad(x.clone(), b, |c| c),
            custom_grad(x.clone(), x, |_| b.clone());
        custom_jvp: custom_jvp(b.clone(), x, |c| c), custom_jvp(x.clone(), b, |c| c),
            custom_jvp(x.clone(), x, |_| b.clone());
    }
}

fn host_functions() -> impl IntoIterator<Item = Case> {
    cases! { |b, x|
        hook: hook(b.clone(), |_: Tensor| ());
        named_hook: named_hook(b.clone(), "a hook");
        named_hook_or: named_hook_or(b.clone(), "a hook", |_: Tensor| ());
        print_value: print_value(b.clone(), "a label");
        runtime_call: runtime_call::<_, Expr, Error>(b.clone(), TensorType::scalar(DType::F32), Ok);
    }
}

/// Returns the leaves of a Jacobian, whose type the macro cannot infer.
fn flat<C: Container>(container: C) -> Vec<Expr> {
    let mut leaves = Leaves::default();
    container.flatten(&mut leaves);
    Tree::<Expr>::leaves(&container)
}

fn transforms() -> impl IntoIterator<Item = Case> {
    cases! { |b, x|
        grad: grad(|x: Expr| x.sum())(b.clone()), grad(|_: Expr| b.clone())(x.clone());
        value_and_grad: value_and_grad(|x: Expr| x.sum())(b.clone()),
            value_and_grad(|_: Expr| (b.clone(), b.clone()))(x.clone());
        jvp: jvp(|x: Expr| x)(b.clone(), x.clone()), jvp(|x: Expr| x)(x.clone(), b.clone()),
            jvp(|_: Expr| b.clone())(x.clone(), x.clone());
        vjp: {
            let (y, pull) = vjp(|x: Expr| x, b.clone());
            (pull(x.clone()), pull(b.clone()), y)
        }, vjp(|x: Expr| x, x.clone()).1(b.clone()), vjp(|_: Expr| b.clone(), x.clone()).0;
        linearize: {
            let (y, push) = linearize(|x: Expr| x, b.clone());
            (push(x.clone()), push(b.clone()), y)
        }, linearize(|x: Expr| x, x.clone()).1(b.clone()), linearize(|_: Expr| b.clone(), x.clone()).0;
        jacfwd: flat(jacfwd(|x: Expr| x)(b.clone())), flat(jacfwd(|_: Expr| b.clone())(x.clone()));
        jacrev: flat(jacrev(|x: Expr| x)(b.clone())), flat(jacrev(|_: Expr| b.clone())(x.clone()));
        jacobian: flat(jacobian(|x: Expr| x)(b.clone())), flat(jacobian(|_: Expr| b.clone())(x.clone()));
        hessian: flat(hessian(|x: Expr| x.sum())(b.clone())), flat(hessian(|_: Expr| b.clone())(x.clone()));
        hessian_diagonal: hessian_diagonal(|x: Expr| x.sum())(b.clone()),
            hessian_diagonal(|_: Expr| b.clone())(x.clone());
        hvp: hvp(|x: Expr| x.sum())(b.clone(), x.clone()), hvp(|x: Expr| x.sum())(x.clone(), b.clone()),
            hvp(|_: Expr| b.clone())(x.clone(), x.clone());
        safe_where: safe_where(b, x, 1, |x| x, 0), safe_where(x, b, 1, |x| x, 0),
            safe_where(x, x, 1, |_| b.clone(), 0);
    }
}

fn vectors() -> impl IntoIterator<Item = Case> {
    cases! { |b, x|
        vectorize: b.vectorize(["row"]);
        devectorize: b.devectorize(false);
        revectorize: b.revectorize(["row"], &EntryAxes::shape([1]));
        reshape_vectors: drop(Expr::reshape_vectors(&[b.clone(), x.clone()], true));
        broadcast_vectors: drop(Expr::broadcast_vectors(&[x.clone(), b.clone()], true));
        vmap: vmap(|x: Expr| x, 0, 0)(b.clone()), vmap(|_: Expr| b.clone(), 0, 0)(x.clone()),
            vmap(|x: Expr| x.reshape([7]), 0, 0)(x.clone());
    }
}

fn collectives() -> impl IntoIterator<Item = Case> {
    cases! { |b, x|
        psum: psum(b, "data");
        pmean: pmean(b, "data");
        pmax: pmax(b, "data");
        pmin: pmin(b, "data");
        pvary: pvary(b, "data");
        all_gather: all_gather(b, "data", 0, false);
        psum_scatter: psum_scatter(b, "data", 0);
        all_to_all: all_to_all(b, "data", 0, 0);
        ppermute: ppermute(b, "data", &[(0, 1)]);
    }
}
